/** Stores an import file's time once for all its records, so that an import writes no rows for unchanged records. */
import type { Queries } from '../storage/queries.ts';
import type { Plan } from './pages.ts';
import { hasLine, keyOfBoth, keyOfId, PAGE_SIZE } from './stage.ts';

const COUNTED_AT_ONCE = 20_000;

const keyOfPart = (part: string): string =>
  `CROSS JOIN LATERAL (SELECT ${keyOfId(`k.${part}_id`)} AS key OFFSET 0) ${part}`;

/** SQL that takes records out of set `$2` if import `$1` lacks them. Records older than the set get the set's time. */
const TAKE_OUT = `WITH page AS MATERIALIZED (
    SELECT thing, account_id, organization_id, warehouse_id FROM known_times
      WHERE file_id = $2 AND thing > $3 ORDER BY thing LIMIT $4),
  absent AS (
    SELECT k.thing FROM page k ${['account', 'organization', 'warehouse'].map(keyOfPart).join(' ')}
      WHERE NOT coalesce(CASE split_part(k.thing, ' ', 1)
        WHEN 'account' THEN account.key IS NOT NULL
        WHEN 'organization' THEN organization.key IS NOT NULL
        WHEN 'warehouse' THEN warehouse.key IS NOT NULL
        WHEN 'membership' THEN ${hasLine('membership', keyOfBoth('account.key', 'organization.key'))}
        ELSE ${hasLine('warehouse_rights', keyOfBoth('account.key', 'warehouse.key'))} END, false)),
  taken_out AS (
    UPDATE known_times k SET file_id = NULL, as_of = greatest(k.as_of, f.as_of)
      FROM absent, known_files f WHERE k.thing = absent.thing AND k.file_id = $2 AND f.id = $2)
  SELECT CASE WHEN count(*) = $4 THEN max(thing) END AS next FROM page`;

/** The keys of both maps are ids of sets of records. */
export interface SetsOfFile {
  /** How many records of each set are in the file. */
  readonly files: ReadonlyMap<string, number>;
  /** Number of records in each set before the import file was compared. */
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Chooses the set of records that has the most records in common with the file, and gives the set the time of the file.
 * From then on, an older line about one of these records is outdated.
 * @param step runs a transaction that excludes other writers and fails if the lines of the file are no longer stored
 * @returns the id of the chosen set. If the file is older than this set, returns the id of a new set instead. The
 * records of the chosen set then keep their time.
 */
export async function chooseFile(
  step: <Result>(work: (tx: Queries) => Promise<Result>) => Promise<Result>,
  { importId, asOf }: Plan,
  { files, sizes }: SetsOfFile,
): Promise<string> {
  const [id, inFile] = [...files].sort(([, a], [, b]) => b - a)[0] ?? [];
  const file = await step(async (tx) => {
    const [found] = await tx.query<{ as_of: Date }>('SELECT as_of FROM known_files WHERE id = $1', [id ?? null]);
    if (found && found.as_of <= asOf) return found;
    await tx.query('INSERT INTO known_files (id, as_of) VALUES ($1, $2) ON CONFLICT DO NOTHING', [importId, asOf]);
    return undefined;
  });
  if (id === undefined || file === undefined) return importId;
  if (file.as_of.getTime() === asOf.getTime()) return id;
  let after = sizes.get(id) === inFile ? null : '';
  while (after !== null) {
    const from: string = after;
    const [page] = await step((tx) => tx.query<{ next: string | null }>(TAKE_OUT, [importId, id, from, PAGE_SIZE]));
    after = page?.next ?? null;
  }
  await step((tx) => tx.query('UPDATE known_files SET as_of = $2 WHERE id = $1', [id, asOf]));
  return id;
}

/**
 * Returns how many records are in each set. Uses several statements, because each statement has a timeout. Until the
 * next import, no set can have more records than this, because only an import adds records to a set.
 */
export async function sizesOf(database: Queries): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  let after = ['', ''];
  for (;;) {
    const rows: { id: string; count: number; thing: string }[] = await database.query(
      `SELECT file_id AS id, count(*)::int AS count, max(thing) AS thing FROM (
          SELECT file_id, thing FROM known_times WHERE file_id IS NOT NULL AND (file_id, thing) > ($1, $2)
            ORDER BY file_id, thing LIMIT $3) k
        GROUP BY file_id ORDER BY file_id`,
      [...after, COUNTED_AT_ONCE],
    );
    for (const { id, count } of rows) sizes.set(id, (sizes.get(id) ?? 0) + count);
    const last = rows.at(-1);
    if (!last) return sizes;
    after = [last.id, last.thing];
  }
}

/** Deletes sets without records, except the new set of a running import. */
export const forgetFiles = (database: Queries): Promise<unknown> =>
  database.query(`DELETE FROM known_files f WHERE NOT EXISTS (SELECT FROM known_times k WHERE k.file_id = f.id)
    AND NOT EXISTS (SELECT FROM import_runs r WHERE r.id = f.id)`);
