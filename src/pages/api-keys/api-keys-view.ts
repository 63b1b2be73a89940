/** What the page of a person's API keys prints. */
import type { ListView } from '../lists.ts';
import type { FormProblem } from '../view-data.ts';
import type { Moment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'api-keys': ApiKeysView;
  }
}

export interface ApiKeysView {
  readonly notice: string | undefined;
  readonly keys: readonly ApiKeyRow[];
  readonly list: ListView;
  /** How many a person may have. */
  readonly limit: number;
  /** Absent where there is no room for another key. */
  readonly form: ApiKeyForm | undefined;
}

export interface ApiKeyRow {
  readonly name: string;
  /** Its beginning and its end: `gate_key_…x7Qa`. */
  readonly masked: string;
  readonly created: Moment;
  /** Absent for a key that does not expire. */
  readonly expires: Moment | undefined;
  readonly isExpired: boolean;
  /** Absent for a key that was never used. */
  readonly lastUsed: Moment | undefined;
  /** The page that asks whether to revoke it. */
  readonly revokeUrl: string;
}

export interface ApiKeyForm {
  readonly action: string;
  /** Tells one drawn form from the next. */
  readonly creationKey: string;
  /** What was typed before, or empty. */
  readonly name: string;
  readonly expiries: readonly {
    readonly value: string;
    readonly label: string;
    readonly isChosen: boolean;
  }[];
  /** Above the form; those of a field stand beside it as well. */
  readonly problems: readonly FormProblem[];
  readonly nameProblem: string | undefined;
  readonly expiryProblem: string | undefined;
}
