/** What the pages of a person's OAuth clients print, but for those of one client. */
import type { ListView } from '../lists.ts';
import type { FormProblem } from '../view-data.ts';
import type { Moment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-clients': {
      readonly notice: string | undefined;
      readonly clients: readonly OAuthClientRow[];
      readonly list: ListView;
      /** How many a person may have. */
      readonly limit: number;
      readonly hasRoom: boolean;
    };
    readonly 'oauth-client-new': {
      readonly notice: string | undefined;
      readonly form: ClientFormView;
    };
    readonly 'oauth-client-delete': {
      readonly name: string;
      readonly connectedPeople: number;
      readonly notice: string | undefined;
      readonly action: string;
      /** What was typed before, or empty. */
      readonly typedName: string;
      readonly problem: string | undefined;
      readonly cancel: string;
    };
  }
}

export interface OAuthClientRow {
  readonly url: string;
  readonly id: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly created: Moment;
  readonly connectedPeople: number;
  /** Absent for a client that never did anything. */
  readonly lastUsed: Moment | undefined;
  /** Refused requests of the last days. */
  readonly problems: number;
  readonly problemsUrl: string;
}

/** The fields that a person fills in for a client, new or not. */
export interface ClientFormView {
  readonly action: string;
  /** Of a new client: tells one drawn form from the next. */
  readonly creationKey?: string;
  /** What the client was when the form was drawn; absent for a new client. */
  readonly drawnFrom: string | undefined;
  /** Above the form; those of a field stand beside it as well. */
  readonly problems: readonly FormProblem[];
  /** What was typed before, or empty. */
  readonly name: string;
  readonly nameProblem: string | undefined;
  /** Absent where nobody is sent back to the client. */
  readonly rows: readonly RedirectUriRow[] | undefined;
  readonly canAddRow: boolean;
  readonly button: string;
}

export interface RedirectUriRow {
  readonly uri: string;
  readonly problem: string | undefined;
  /** Allowed, but worth a second look. */
  readonly warnings: readonly string[];
  /** It was added just now. */
  readonly isNew: boolean;
}
