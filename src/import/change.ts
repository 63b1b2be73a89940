/** What one step of an import would change, as a report shows it, and how that is written. */

import type { NewActivity } from '../accounts/activity/activity.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportIndex } from './known-ids.ts';
import type { ImportKey } from './line.ts';
import type { FoundProblems } from './problems.ts';

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
  /** Take an organization or a warehouse that was made by hand for the one of its name in the file. */
  readonly adoptByName: boolean;
  readonly adopted: Readonly<Record<AdoptedType, Adopted>>;
}

export type AdoptedType = 'organization' | 'warehouse' | 'account';

/**
 * What is in the file, and in the database without an external id or with a former one. Until that is
 * written, what refers to it is looked up with this.
 */
export interface Adopted {
  /** By the external id of the file. */
  readonly ids: Map<string, string>;
  /** The other way round. */
  readonly externalIds: Map<string, string>;
}

export function adopt({ adopted }: ImportFacts, { type, external_id }: AdoptedKey, id: string) {
  adopted[type].ids.set(external_id, id);
  adopted[type].externalIds.set(id, external_id);
}

interface AdoptedKey {
  readonly type: AdoptedType;
  readonly external_id: string;
}

/** For `coalesce(line.adopted, …)`: the ids of those that have no such external id yet. */
export const adoptedIds = (
  { adopted }: ImportFacts,
  type: AdoptedType,
  externalIds: readonly string[],
): (string | null)[] => externalIds.map((id) => adopted[type].ids.get(id) ?? null);

/** The values of each column, for `unnest`. */
export const columnsOf = <Row extends object>(
  rows: readonly Row[],
  ...columns: readonly KeyOf<Row>[]
): unknown[][] =>
  columns.map((column) => rows.map((row) => (row as Record<string, unknown>)[column] ?? null));

/** A key of any member of a union. */
type KeyOf<Row> = Row extends object ? Extract<keyof Row, string> : never;

export const twoOfThem = (former: string): string =>
  `former_external_id: there is one with ${JSON.stringify(former)} and one with the external_id; ` +
  'remove one of the two first, or leave former_external_id out';
