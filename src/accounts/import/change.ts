/** What one step of an import would change, as a report shows it, and how that is written. */
import type { Queries } from '../../storage/queries.ts';
import type { NewActivity } from '../activity.ts';
import type { ImportIndex } from './known-ids.ts';
import type { FoundProblems } from './problems.ts';
import type { ImportKey } from './source.ts';

/**
 * `removed` of an account: suspended, for an account is never deleted. `kept`: no longer in the file,
 * but something that was made by hand depends on it.
 */
export type ChangeKind = 'added' | 'changed' | 'removed' | 'kept';

export type FieldValue = string | boolean | readonly string[] | null;

export interface ImportChange {
  readonly change: ChangeKind;
  readonly key: ImportKey;
  /** For people, who do not know ids by heart: an email address, or a name. */
  readonly name?: string;
  /** What the fields were and are; of something new or removed, those that matter. */
  readonly fields?: Readonly<Record<string, readonly [before: FieldValue, after: FieldValue]>>;
}

/** What a batch comes to. Looking changes nothing. */
export interface ImportStep {
  readonly changes: readonly ImportChange[];
  /** In the transaction in which the step was found. @returns what is to be recorded of it. */
  write(tx: Queries): Promise<ImportActivity[]>;
}

export type ImportActivity = Pick<NewActivity, 'action' | 'accountId' | 'details'>;

/** What the steps of an import know of it. */
export interface ImportFacts {
  readonly index: ImportIndex;
  readonly now: Date;
  /** What only the database knows to be wrong. */
  readonly problems: FoundProblems;
  /**
   * Accounts that were made by hand and are in the file: the account's id for its external id. Until
   * that is written, memberships are looked up with this.
   */
  readonly adopted: Map<string, string>;
  /** The same the other way round. */
  readonly adoptedAs: Map<string, string>;
}
