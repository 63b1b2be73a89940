/** Migrates the schema with the SQL files in the folder `migrations`. */
import { readdir, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { sha256 } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { type OpenDatabase, placeOf } from './database.ts';
import { StorageUnavailable } from './storage-unavailable.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');
const TABLE = 'gatehouse_migrations';
const FIRST = '0001_schema';
/** Migrations use a connection without a query timeout, because a migration may rewrite a table. */
const CONNECT_TIMEOUT_MS = 5_000;
/** The timeout is short: while a migration waits for the lock of a table, all readers of the table must wait. */
const LOCK_TIMEOUT_MS = 300;
/** PostgreSQL cancels an autovacuum only for a session that waits longer than deadlock_timeout, 1 s. */
const VACUUM_LOCK_TIMEOUT_MS = 1_500;
/** Number of attempts of which one waits for `VACUUM_LOCK_TIMEOUT_MS`. During a long wait, readers fail. */
const ATTEMPTS_PER_LONG_ONE = 4;
const LOCK_PAUSE_MS = 2_000;
const WATCH_INTERVAL_MS = 100;
const LOCK_NOT_AVAILABLE = '55P03';
/** The timeout is long: the embedded database accepts no connection while another process migrates it. */
const EMBEDDED_CONNECT_TIMEOUT_MS = 60_000;

/**
 * Applies missing migrations in order, each file in its own transaction, under an advisory lock: if several nodes start
 * at once, one migrates and the others wait. On the embedded database this lock has no effect, because all connections
 * share one session. On the embedded database, one transaction blocks the others instead. If another session, such as a
 * backup, has a lock that a migration needs, the migration is tried again until that session ends.
 *
 * @param events.onMigration called when a migration begins
 * @param events.onWait called with the session for which a migration waits
 * @param folder of the SQL files. Only tests use another one, with a migration of a later version.
 * @returns the names of the migrations applied now
 * @throws Refusal `schema_unknown`, or StorageUnavailable if the server cannot be reached
 */
export async function migrate(
  database: OpenDatabase,
  { onMigration = () => {}, onWait = () => {} }: MigrationEvents = {},
  folder = MIGRATIONS,
): Promise<string[]> {
  const { runner } = await import('node-pg-migrate');
  const client = new pg.Client({
    ...database.connection,
    application_name: 'gatehouse migrate',
    connectionTimeoutMillis: database.embedded ? EMBEDDED_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => {});
  await client.connect().catch((cause: unknown) => {
    throw new StorageUnavailable('postgresql', cause);
  });
  const started = new Set<string>();
  const run = () =>
    runner({
      dbClient: client,
      dir: folder,
      direction: 'up',
      migrationsTable: TABLE,
      advisoryLockMode: 'wait',
      singleTransaction: database.embedded,
      log: (line) => {
        const name = /^### MIGRATION (\S+)/.exec(line)?.[1];
        if (name === undefined || started.has(name)) return;
        started.add(name);
        onMigration();
      },
    });
  const applyAll = async (): Promise<void> => {
    await compareMigrations({ ...database, query: async (text) => (await client.query(text)).rows });
    // The first migration, which has its own transaction, stores this text as a comment of a table.
    await client.query(`SET gatehouse.schema = '${await schemaFingerprint()}'`);
    await run();
  };
  try {
    if (!database.embedded) await repeatWithLocks(database, client, applyAll, onWait);
    else {
      // Begin the transaction before pending migrations are listed, so that no other process migrates in between.
      await client.query('BEGIN');
      await applyAll();
      await client.query('COMMIT');
    }
    return [...started];
  } catch (error) {
    // If the migration library fails on its own table, its error does not have PostgreSQL's code.
    const isCoded = error instanceof Error && 'code' in error;
    if (!database.embedded && !isCoded && !(await mayCreateTables(client))) throw schemaRefused();
    throw error;
  } finally {
    await client.end();
  }
}

/** Returns true if this role may create tables, and also if the query fails. */
async function mayCreateTables(client: pg.Client): Promise<boolean> {
  const asked = client.query<{ may: boolean }>("SELECT has_schema_privilege(current_schema(), 'CREATE') AS may");
  const [row] = await asked.then(({ rows }) => rows).catch(() => []);
  return row?.may !== false;
}

const schemaRefused = (): StorageUnavailable =>
  new StorageUnavailable(
    'postgresql',
    Object.assign(new Error('permission denied for schema public'), { code: '42501' }),
  );

export async function tableNames(): Promise<string[]> {
  const files = (await readdir(MIGRATIONS)).filter((name) => name.endsWith('.sql'));
  const texts = await Promise.all(files.map((name) => readFile(path.join(MIGRATIONS, name), 'utf8')));
  const created = texts.flatMap((sql) => [...sql.matchAll(/^create (?:unlogged )?table (?:if not exists )?(\w+)/gim)]);
  return [TABLE, ...created.flatMap(([, name]) => name ?? [])];
}

interface MigrationEvents {
  readonly onMigration?: (() => void) | undefined;
  readonly onWait?: ((session: string) => void) | undefined;
}

/** An ordinary role sees the name of another role's client, but not that its session is an autovacuum. */
const HIDDEN = 'a session that this role may not see';
const BLOCKER = `SELECT concat(coalesce(nullif(application_name, ''), backend_type, '${HIDDEN}'), ' (process ', pid,
      ')', to_char(xact_start AT TIME ZONE 'UTC', '", whose transaction began "YYYY-MM-DD"T"HH24:MI:SS"Z"'))
    AS session FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids($1)) ORDER BY xact_start LIMIT 1`;

/** Repeats the work while another session has a lock that it needs. Readers can continue during the pauses. */
async function repeatWithLocks(
  database: OpenDatabase,
  client: pg.Client,
  work: () => Promise<unknown>,
  onWait: (session: string) => void,
): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  let [session, isOver] = ['', false];
  // Query the blocking session on another connection: PostgreSQL shows it only while the migration waits.
  const watch = async (): Promise<void> => {
    for (;;) {
      await delay(WATCH_INTERVAL_MS);
      if (isOver) return;
      const found = await database.query<{ session: string }>(BLOCKER, [rows[0]?.pid]).catch(() => []);
      if (found[0] === undefined || found[0].session === session) continue;
      ({ session } = found[0]);
      onWait(session);
    }
  };
  void watch();
  try {
    for (let attempt = 1; ; attempt += 1) {
      const isVacuum = session.startsWith('autovacuum') || session.startsWith(HIDDEN);
      const isLong = isVacuum && attempt % ATTEMPTS_PER_LONG_ONE === 2;
      await client.query(`SET lock_timeout = ${isLong ? VACUUM_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS}`);
      try {
        await work();
        return;
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== LOCK_NOT_AVAILABLE) throw error;
        await client.query('ROLLBACK');
        await delay(LOCK_PAUSE_MS);
      }
    }
  } finally {
    isOver = true;
  }
}

/** Thrown if migrations are missing and the operator wants to migrate manually. */
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

/** Before 1.0.0 the first migration was edited in place, so its name does not tell which text created a schema. */
const schemaFingerprint = async (): Promise<string> => {
  const text = await readFile(path.join(MIGRATIONS, `${FIRST}.sql`), 'utf8');
  return `schema ${sha256(text.replace(/--.*$/gm, '').replace(/\s+/g, ' '))}`;
};

/** Thrown for a schema of a commit before 1.0.0, from which no migration leads to the schema of this version. */
async function schemaUnknown({ embedded, connection }: OpenDatabase): Promise<Refusal> {
  const { connectionString = '', host = '' } = connection;
  const place = embedded
    ? `the embedded database in ${await realpath(host)}`
    : `the database ${placeOf(connectionString)}`;
  return new Refusal(
    'schema_unknown',
    `${place} was created by a development version before 1.0.0, whose schema this version does not know; ` +
      'nothing in it was changed',
    `name another one in ${embedded ? 'storage.data_directory' : 'DATABASE_URL'}, or start the version that created this one`,
  );
}

/**
 * Migrates if `autoMigrate` is true.
 * @returns the names of migrations that only a later version has. The present version works with these, too.
 * @throws Refusal `schema_unknown`, or MigrationsPending if `autoMigrate` is false and migrations are missing
 */
export async function requireSchema(
  database: OpenDatabase,
  { autoMigrate }: { autoMigrate: boolean },
  onWait?: MigrationEvents['onWait'],
): Promise<readonly string[]> {
  // Do not compare the versions first: the embedded database is too slow while another process migrates it.
  if (database.embedded && autoMigrate) {
    await migrate(database, { onWait });
    return (await compareMigrations(database)).newer;
  }
  const { pending, newer } = await compareMigrations(database);
  if (pending.length === 0) return newer;
  if (!autoMigrate) throw new MigrationsPending(pending);
  await migrate(database, { onWait });
  return newer;
}

/** False for a database on which Gatehouse was never started. @throws StorageUnavailable */
export async function hasSchema({ query }: Pick<OpenDatabase, 'query'>): Promise<boolean> {
  const [row] = await query<{ present: boolean; hidden: boolean }>(
    `SELECT to_regclass('${TABLE}') IS NOT NULL AS present, current_schema() IS NULL
      AND to_regnamespace('public') IS NOT NULL AS hidden`,
  );
  // A role without the right to use the schema sees no tables in the schema.
  if (row?.hidden) throw schemaRefused();
  return row?.present === true;
}

export const pendingMigrations = async (database: OpenDatabase): Promise<string[]> =>
  (await compareMigrations(database)).pending;

/**
 * `pending` migrations are only in this version, `newer` ones only in the database.
 * @throws Refusal `schema_unknown`
 */
export async function compareMigrations(
  database: OpenDatabase,
): Promise<{ readonly pending: string[]; readonly newer: string[] }> {
  const rows = (await hasSchema(database))
    ? await database.query<{ name: string; fingerprint: string | null }>(
        `SELECT name, obj_description('${TABLE}'::regclass, 'pg_class') AS fingerprint FROM ${TABLE}`,
      )
    : [];
  const applied = rows.map(({ name }) => name);
  if (rows[0] && (!applied.includes(FIRST) || rows[0].fingerprint !== (await schemaFingerprint()))) {
    throw await schemaUnknown(database);
  }
  const files = await readdir(MIGRATIONS);
  const own = files.map((file) => path.basename(file, '.sql')).sort();
  return {
    pending: own.filter((name) => !applied.includes(name)),
    newer: applied.filter((name) => !own.includes(name)),
  };
}
