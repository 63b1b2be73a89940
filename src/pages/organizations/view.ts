/** What the pages of organizations print. */
import type { ListView } from '../lists.ts';
import type { Moment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly organizations: {
      readonly notice: string | undefined;
      readonly organizations: readonly OrganizationRow[];
      readonly list: ListView;
    };
    readonly organization: {
      readonly name: string;
      readonly role: string;
      readonly notice: string | undefined;
      readonly problem: string | undefined;
      /** All of it, where only one part is shown. */
      readonly wholeUrl: string | undefined;
      readonly parts: readonly ReachPart[];
    };
  }
}

export interface OrganizationRow {
  readonly name: string;
  readonly role: string;
  /** How many of its warehouses the person reaches: `3 warehouses`. */
  readonly warehouses: string;
  /** Its own page; absent where somebody else is in charge of it. */
  readonly url: string | undefined;
}

/** People, clients, machine clients or API keys. */
export interface ReachPart {
  readonly id: string;
  readonly heading: string;
  /** What is to be known of all of them. */
  readonly note: string;
  /** Where there are none. */
  readonly empty: string;
  readonly rows: readonly ReachRow[];
  readonly total: number;
  /** Where all of them are; absent where all of them are here. */
  readonly allUrl: string | undefined;
  /** Absent where only the first few are shown. */
  readonly list: ListView | undefined;
}

export interface ReachRow {
  readonly name: string;
  /** Who that is: an email address, who provides it, the end of a key. */
  readonly detail: string;
  readonly role: string | undefined;
  /** What is unusual: `suspended`, `shut out`, `you`. */
  readonly marks: readonly { readonly text: string; readonly isWarning: boolean }[];
  readonly facts: readonly ReachFact[];
  /** Absent where nobody here may end it. */
  readonly action:
    | { readonly url: string; readonly label: string; readonly isEnd: boolean }
    | undefined;
}

export interface ReachFact {
  readonly label: string;
  /** One of the two. */
  readonly text?: string;
  readonly moment?: Moment;
}
