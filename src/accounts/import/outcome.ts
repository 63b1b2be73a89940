/** What the last import came to: for the metrics of the service, which is another process. */
import type { Queries } from '../../storage/queries.ts';
import type { ChangeKind } from './change.ts';
import { IMPORT_TYPES, type ImportType } from './line.ts';
import type { ImportReport } from './report.ts';

export interface ImportOutcome {
  readonly succeededAt: Date;
  readonly changes: Readonly<Record<ImportType, Readonly<Record<ChangeKind, number>>>>;
}

export const IMPORT_CHANGES: readonly ChangeKind[] = ['added', 'changed', 'removed', 'kept'];

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
