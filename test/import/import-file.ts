/** Files for `operator import`, and the state of the databases that it changes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

export type Line = Readonly<Record<string, unknown>>;

/** Writes a file with these lines, objects as JSON and strings unchanged, and returns its path. */
export function fileOf(...lines: readonly (Line | string)[]): string {
  const file = path.join(temporaryDirectory('import'), 'people.jsonl');
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(file, `${texts.join('\n')}\n`);
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

/** Fingerprints all rows that an import may write, with the transactions that wrote them last. */
export async function databaseSnapshot(database: OpenDatabase): Promise<unknown> {
  const tables = [
    'accounts',
    'organizations',
    'warehouses',
    'organization_memberships',
    'warehouse_rights',
    'activity',
  ];
  return Promise.all(
    tables.map((table) =>
      database.query(`SELECT count(*), max(xmin::text::bigint), min(xmin::text::bigint),
        sum(hashtext(${table}::text)::bigint) FROM ${table}`),
    ),
  );
}

/** Deletes all rows with DELETE, which takes a fraction of the time of TRUNCATE; last the times of these ends. */
export async function emptyDatabase(database: OpenDatabase): Promise<void> {
  for (const table of ['accounts', 'organizations', 'activity', 'known_times', 'pushed_removals']) {
    await database.query(`DELETE FROM ${table}`);
  }
}
