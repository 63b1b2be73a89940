/** What the page of a person's security log prints. */
import type { Moment } from './moment.ts';

export interface ActivityView {
  readonly entries: readonly ActivityEntry[];
  /** The next page; absent where these are the oldest. */
  readonly olderUrl: string | undefined;
  /** Back to the first page; absent there. */
  readonly newestUrl: string | undefined;
}

export interface ActivityEntry {
  readonly at: Moment;
  /** `Signed in`, `API key revoked` */
  readonly what: string;
  /** The name of the client, key, organization or warehouse it was about. */
  readonly about: string | undefined;
  /** More about it, such as `ending in x7Qa`. */
  readonly note: string | undefined;
  /** Something that the person may not have done themselves. */
  readonly isWarning: boolean;
  /** `Firefox on Windows`, or `The operator`. */
  readonly by: string;
  /** The network address it came from; absent for what came from no browser. */
  readonly address: string | undefined;
}
