/** Migrates the schema with the SQL files in the folder `migrations`. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { Refusal } from '../base/refusal.ts';
import type { OpenDatabase } from './database.ts';
import { StorageUnavailable } from './storage-unavailable.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');
const TABLE = 'gatehouse_migrations';
/** Migrations use a connection without a query timeout: one may rewrite a table. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Long, because the embedded database accepts no connection while another process migrates it. */
const EMBEDDED_CONNECT_TIMEOUT_MS = 60_000;

/**
 * Applies missing migrations in order, each file in its own transaction, under an advisory lock: if
 * several nodes start at once, one migrates and the others wait. On the embedded database, where all
 * connections share one session, that lock has no effect: one transaction blocks the others instead.
 *
 * @param onMigration called when a migration begins.
 * @returns the names of the migrations applied now.
 * @throws StorageUnavailable if the server cannot be reached.
 */
export async function migrate(
  database: OpenDatabase,
  onMigration: () => void = () => {},
): Promise<string[]> {
  const { runner } = await import('node-pg-migrate');
  const client = new pg.Client({
    ...database.connection,
    connectionTimeoutMillis: database.embedded ? EMBEDDED_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => {});
  await client.connect().catch((cause: unknown) => {
    throw new StorageUnavailable('postgresql', cause);
  });
  try {
    // Begin before the runner lists missing files; its COMMIT or a disconnect ends the transaction.
    if (database.embedded) await client.query('BEGIN');
    const applied = await runner({
      dbClient: client,
      dir: MIGRATIONS,
      direction: 'up',
      migrationsTable: TABLE,
      advisoryLockMode: 'wait',
      singleTransaction: database.embedded,
      log: (line) => {
        if (line.startsWith('### MIGRATION')) onMigration();
        if (!line.startsWith('### MIGRATION 0001_')) return;
        // Queued before the migration; migration 0060 reads it. A lost connection fails the migration.
        client.query("SET gatehouse.is_new = 'yes'", () => {});
      },
    });
    if (database.embedded) await client.query('COMMIT');
    return applied.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

/** Thrown if the schema is older than this version and the operator wants to migrate by hand. */
export class MigrationsPending extends Refusal {
  constructor(names: readonly string[]) {
    super(
      'migrations_pending',
      `the database schema lacks ${names.join(', ')}`,
      'run `gatehouse migrate`, or start with storage.auto_migrate: true',
    );
    this.name = 'MigrationsPending';
  }
}

/**
 * Migrates if `autoMigrate` is true.
 *
 * @throws MigrationsPending if `autoMigrate` is false and migrations are missing.
 */
export async function requireSchema(
  database: OpenDatabase,
  { autoMigrate }: { autoMigrate: boolean },
): Promise<void> {
  // Do not compare first: during another process's migration the embedded database is too slow.
  if (database.embedded && autoMigrate) {
    await migrate(database);
    return;
  }
  const pending = await pendingMigrations(database);
  if (pending.length === 0) return;
  if (!autoMigrate) throw new MigrationsPending(pending);
  await migrate(database);
}

/** False for a database on which Gatehouse was never started. */
export async function hasSchema(database: OpenDatabase): Promise<boolean> {
  const [row] = await database.query<{ present: boolean }>(
    'SELECT to_regclass($1) IS NOT NULL AS present',
    [TABLE],
  );
  return row?.present === true;
}

/** Returns the names of migrations of this version that the database does not have yet. */
export const pendingMigrations = async (database: OpenDatabase): Promise<string[]> =>
  (await compareMigrations(database)).pending;

/** Returns migration names: `pending` are only in this version, `newer` only in the database. */
export async function compareMigrations(
  database: OpenDatabase,
): Promise<{ readonly pending: string[]; readonly newer: string[] }> {
  const applied = (await hasSchema(database))
    ? (await database.query<{ name: string }>(`SELECT name FROM ${TABLE}`)).map(({ name }) => name)
    : [];
  const files = await readdir(MIGRATIONS);
  const own = files.map((file) => path.basename(file, '.sql')).sort();
  return {
    pending: own.filter((name) => !applied.includes(name)),
    newer: applied.filter((name) => !own.includes(name)),
  };
}
