/** Files for `operator import`, and the state of the databases that it changes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { type Changes, createChanges } from '../../src/changes/engine.ts';
import { createImporter } from '../../src/changes/import.ts';
import type { ImportReport } from '../../src/changes/report.ts';
import { openImportFile } from '../../src/operator/import/file.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

export type Line = Readonly<Record<string, unknown>>;

/** Returns the bytes of these lines: objects as JSON, all others unchanged. */
export const bodyOf = (lines: readonly (Line | string | Buffer)[]): Buffer =>
  Buffer.concat(
    lines.flatMap((one) => [
      Buffer.isBuffer(one) ? one : Buffer.from(typeof one === 'string' ? one : JSON.stringify(one)),
      Buffer.from('\n'),
    ]),
  );

/** Writes a file with these lines, and returns its path. */
export function fileOf(...lines: readonly (Line | string | Buffer)[]): string {
  const file = path.join(temporaryDirectory('import'), 'people.jsonl');
  writeFileSync(file, bodyOf(lines));
  return file;
}

/** Minimal lines of each type; `more` replaces and adds keys. */
export const line = {
  organization: (external_id: string, name = `Organization ${external_id}`): Line => ({
    type: 'organization',
    external_id,
    name,
  }),
  warehouse: (external_id: string, organization: string, more: Line = {}): Line => ({
    type: 'warehouse',
    external_id,
    organization,
    name: `Warehouse ${external_id}`,
    ...more,
  }),
  account: (external_id: string, more: Line = {}): Line => ({
    type: 'account',
    external_id,
    email: `${external_id.toLowerCase()}@example.test`,
    name: `Person ${external_id}`,
    ...more,
  }),
  membership: (account: string, organization: string, role = 'member'): Line => ({
    type: 'membership',
    account,
    organization,
    role,
  }),
  rights: (account: string, warehouse: string, ...rights: readonly string[]): Line => ({
    type: 'warehouse_rights',
    account,
    warehouse,
    rights,
  }),
} as const;

/** Imports a file as the command does, with `meanwhile` between the comparison and the first change. */
export async function importWith(
  database: OpenDatabase,
  file: string,
  {
    prune = false,
    pruneAtMost = '100%',
    engine = createChanges({ database }),
    meanwhile,
  }: { prune?: boolean; pruneAtMost?: string; engine?: Changes; meanwhile?: () => Promise<unknown> },
): Promise<ImportReport> {
  const clock = Date.now;
  const importer = createImporter({ database, engine, clock, activity: createActivity({ database, clock }) });
  await using source = await openImportFile(file, process);
  await using run = await importer.begin();
  const { passes } = await importer.stage(run, source.lines());
  const plan = { passes, prune, asOf: source.writtenAt };
  await run.takeTurn();
  const { report, ...sets } = await importer.compare(run, plan, { pruneAtMost });
  await meanwhile?.();
  await importer.carryOut(run, plan, sets);
  return report;
}

/** Fingerprints all rows that an import may write, with the transactions that wrote them last. */
export async function databaseSnapshot(database: OpenDatabase): Promise<unknown> {
  const access = ['organization_memberships', 'warehouse_rights', 'known_times'];
  return Promise.all(
    ['accounts', 'organizations', 'warehouses', 'activity', ...access].map((table) =>
      database.query(`SELECT count(*), max(xmin::text::bigint), min(xmin::text::bigint),
        sum(hashtext(${table}::text)::bigint) FROM ${table}`),
    ),
  );
}

/** Deletes all rows with DELETE, which takes a fraction of the time of TRUNCATE; last the times of these ends. */
export async function emptyDatabase(database: OpenDatabase): Promise<void> {
  for (const table of ['accounts', 'organizations', 'activity', 'known_times', 'pushed_removals']) {
    // In steps, because a statement has a time limit.
    const some = `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} LIMIT 200)) RETURNING 1`;
    while ((await database.query(some)).length > 0);
  }
}
