/** Brings the schema up to date from the SQL files beside this one. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { Refusal } from '../base/refusal.ts';
import type { OpenDatabase } from './database.ts';
import { StorageUnavailable } from './storage-unavailable.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');
const TABLE = 'gatehouse_migrations';
/** A migration may rewrite a table: it gets a connection without the limits of a request. */
const CONNECT_LIMIT = 5_000;
/** The embedded database greets nobody while it is migrated for somebody else. */
const EMBEDDED_CONNECT_LIMIT = 60_000;

/**
 * Applies what is missing, in order, each file in a transaction of its own, under an advisory lock:
 * of several nodes that start at once one migrates and the others wait. On the embedded database that
 * lock is everybody's, for all share one session; there one transaction keeps the turn until the end.
 *
 * @param tell is called when a migration begins.
 * @returns the names of the migrations applied now.
 * @throws StorageUnavailable when the server cannot be reached.
 */
export async function migrate(
  database: OpenDatabase,
  tell: () => void = () => {},
): Promise<string[]> {
  const { runner } = await import('node-pg-migrate');
  const client = new pg.Client({
    ...database.connection,
    connectionTimeoutMillis: database.embedded ? EMBEDDED_CONNECT_LIMIT : CONNECT_LIMIT,
  });
  client.on('error', () => {});
  await client.connect().catch((cause: unknown) => {
    throw new StorageUnavailable('postgresql', cause);
  });
  try {
    // Before it looks what is missing. The runner's own COMMIT ends it, or the end of the connection.
    if (database.embedded) await client.query('BEGIN');
    const applied = await runner({
      dbClient: client,
      dir: MIGRATIONS,
      direction: 'up',
      migrationsTable: TABLE,
      advisoryLockMode: 'wait',
      singleTransaction: database.embedded,
      log: (line) => {
        if (line.startsWith('### MIGRATION')) tell();
      },
    });
    if (database.embedded) await client.query('COMMIT');
    return applied.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

/** The schema is older than this version, and the operator wants to migrate by hand. */
export class MigrationsPending extends Refusal {
  constructor(names: readonly string[]) {
    super(
      'migrations_pending',
      `the database schema is behind by ${names.join(', ')}`,
      '`gatehouse migrate` applies them, as does a start with storage.auto_migrate: true',
    );
    this.name = 'MigrationsPending';
  }
}

/**
 * Migrates, where the operator leaves that to the service.
 *
 * @throws MigrationsPending otherwise, when there is something to migrate.
 */
export async function requireSchema(
  database: OpenDatabase,
  { autoMigrate }: { autoMigrate: boolean },
): Promise<void> {
  // While another process migrates it, the embedded database would not answer in time.
  if (database.embedded && autoMigrate) {
    await migrate(database);
    return;
  }
  const pending = await pendingMigrations(database);
  if (pending.length === 0) return;
  if (!autoMigrate) throw new MigrationsPending(pending);
  await migrate(database);
}

/** False for a database in which no Gatehouse was ever started. */
export async function hasSchema(database: OpenDatabase): Promise<boolean> {
  const [row] = await database.query<{ present: boolean }>(
    'SELECT to_regclass($1) IS NOT NULL AS present',
    [TABLE],
  );
  return row?.present === true;
}

/** The names of the migrations that this version brings and the database does not have yet. */
export const pendingMigrations = async (database: OpenDatabase): Promise<string[]> =>
  (await compareMigrations(database)).pending;

/** The names of the migrations that only one of the two has: this version, or the database. */
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
