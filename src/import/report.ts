/** What an import changes, counted, and the first changes; what the last one came to is kept. */

import type { Queries } from '../storage/queries.ts';
import type { ChangeKind, ImportChange } from './change.ts';
import { IMPORT_TYPES, type ImportType } from './line.ts';
import type { PruneExcess } from './prune-limit.ts';

export type ImportCounts = Record<ChangeKind | 'unchanged', number>;

export interface ImportReport {
  readonly counts: Readonly<Record<ImportType, Readonly<ImportCounts>>>;
  /** The first ones; `changeCount` says how many there are. */
  readonly changes: readonly ImportChange[];
  readonly changeCount: number;
  /** Present if more would be removed than the limit allows. */
  readonly excess?: PruneExcess;
}

const MOST_SHOWN = 100;

export function createImportTally() {
  const nothing = { added: 0, changed: 0, removed: 0, kept: 0, unchanged: 0 };
  const counts = Object.fromEntries(IMPORT_TYPES.map((type) => [type, { ...nothing }])) as Record<
    ImportType,
    ImportCounts
  >;
  const shown: ImportChange[] = [];
  let changeCount = 0;

  return {
    /** @param looked how many lines the step is about; none for what is removed. */
    note(type: ImportType, changes: readonly ImportChange[], looked: number): void {
      for (const { change, key } of changes) counts[key.type][change] += 1;
      // Of something that is added or changed there is a line.
      const ofLines = changes.filter(({ key }) => key.type === type);
      if (looked > 0) counts[type].unchanged += looked - ofLines.length;
      changeCount += changes.length;
      shown.push(...changes.slice(0, MOST_SHOWN - shown.length));
    },
    report: (): ImportReport => ({ counts, changes: shown, changeCount }),
  };
}

/** For the metrics of the service, which is another process. */
export interface ImportOutcome {
  readonly succeededAt: Date;
  readonly changes: Readonly<Record<ImportType, Readonly<Record<ChangeKind, number>>>>;
}

const IMPORT_CHANGES: readonly ChangeKind[] = ['added', 'changed', 'removed', 'kept'];

export async function noteImport(
  database: Queries,
  succeededAt: Date,
  { counts }: ImportReport,
): Promise<void> {
  const ofType = (type: ImportType) =>
    Object.fromEntries(IMPORT_CHANGES.map((change) => [change, counts[type][change]]));
  const changes = Object.fromEntries(IMPORT_TYPES.map((type) => [type, ofType(type)]));
  await database.query(
    `INSERT INTO last_import (succeeded_at, changes) VALUES ($1, $2)
      ON CONFLICT (is_the_only_one) DO UPDATE
        SET succeeded_at = excluded.succeeded_at, changes = excluded.changes`,
    [succeededAt, JSON.stringify(changes)],
  );
}

/** Undefined where there never was one. */
export async function lastImport(database: Queries): Promise<ImportOutcome | undefined> {
  const [row] = await database.query<ImportOutcome>(
    'SELECT succeeded_at AS "succeededAt", changes FROM last_import',
  );
  return row;
}
