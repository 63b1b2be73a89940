/** The changes of one import step: how a report shows them, and how they are written. */
import type { NewActivity } from '../accounts/activity/activity.ts';
import type { ImportKey, LineOf, Numbered } from '../changes/line.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportIndex } from './import-index.ts';
import type { FoundProblems } from './import-problems.ts';

/**
 * A `removed` account is suspended, because accounts are never deleted. `kept`: no longer in the
 * file, but something that was created by hand depends on it.
 */
export type ChangeKind = 'added' | 'changed' | 'removed' | 'kept';

export type FieldValue = string | boolean | readonly string[] | null;

export interface ImportChange {
  readonly change: ChangeKind;
  /** The number of the line that causes the change; absent if no line of the file does (prune). */
  readonly line?: number;
  readonly key: ImportKey;
  /** An email address or a name, for readers who do not know the ids by heart. */
  readonly name?: string;
  /** Values before and after the change; for added or removed things only fields that matter. */
  readonly fields?: Readonly<Record<string, readonly [before: FieldValue, after: FieldValue]>>;
}

/** The result of comparing a batch with the database; comparing changes nothing. */
export interface ImportStep {
  readonly changes: readonly ImportChange[];
  /** @param tx the transaction that compared the batch @returns the activity to record */
  write(tx: Queries): Promise<ImportActivity[]>;
  /** Records the time of each compared record. Called after `write`, even if nothing changed. */
  recordTimes?(tx: Queries): Promise<void>;
  /** Number of lines and imported records that are not applied because of newer changes. */
  readonly newer?: number;
}

/** An imported or pushed line. A pushed line may name a record by `id` instead of an external id. */
export type SetLine<Type extends 'account' | 'organization' | 'warehouse'> = Omit<
  Numbered<LineOf<Type>>,
  'external_id'
> & { readonly external_id: string | null; readonly id?: string | undefined };

export type ImportActivity = Pick<NewActivity, 'action' | 'accountId' | 'details'>;

/** The data that all steps of an import share. */
export interface ImportFacts {
  readonly index: ImportIndex;
  readonly now: Date;
  /** The time as of which the file or the pushed lines describe the data. */
  readonly asOf: Date;
  /** Problems that are found only by the comparison with the database. */
  readonly problems: FoundProblems;
  /** True to adopt places that were created by hand, by the name that they have in the file. */
  readonly adoptByName: boolean;
  /** True if a new organization asks first, unless its line says otherwise. */
  readonly asksFirst: boolean;
  readonly adopted: Readonly<Record<AdoptedType, Adopted>>;
  /** The accounts and places that the import does not add, because they were deleted after its time. */
  readonly skipped: Set<string>;
}

export type AdoptedType = 'organization' | 'warehouse' | 'account';

/**
 * Places or accounts of the file that exist in the database, but there have no external id, or one
 * that the file replaces. Until the database has the external ids of the file, lines that refer to
 * such a place or account are resolved with these maps.
 */
export interface Adopted {
  /** Maps external ids of the file to ids. */
  readonly ids: Map<string, string>;
  /** Maps ids to external ids of the file. */
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

/** Returns, for `coalesce(line.adopted, …)`, the id of each adopted thing; null for the others. */
export const adoptedIds = (
  { adopted }: ImportFacts,
  type: AdoptedType,
  externalIds: readonly string[],
): (string | null)[] => externalIds.map((id) => adopted[type].ids.get(id) ?? null);

/** Returns an array of values for each column, for `unnest`. */
export const columnsOf = <Row extends object>(rows: readonly Row[], ...columns: readonly KeyOf<Row>[]): unknown[][] =>
  columns.map((column) => rows.map((row) => (row as Record<string, unknown>)[column] ?? null));

/** A key of any member of a union. */
type KeyOf<Row> = Row extends object ? Extract<keyof Row, string> : never;

export const bothIdsExist = (former: string): string =>
  `former_external_id: the database has both ${JSON.stringify(former)} and the ` +
  'external_id; delete one of the two first, or leave former_external_id out';
