/** Suites that run on each supported PostgreSQL: the embedded one and a real server. */
import { expect } from 'chai';
import { systemClock } from '../../src/base/clock.ts';
import { type DatabaseOptions, type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import type { Queries } from '../../src/storage/queries.ts';
import { realNow } from './clock.ts';
import { freshDataDirectory } from './embedded-postgres.ts';
import { eventually } from './eventually.ts';
import { createOpened } from './opened.ts';
import { freshMigratedDatabaseUrl } from './postgres-server.ts';
import { describeOn, postgresServer } from './requirements.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

type DatabaseKind = 'embedded' | 'postgres';

/**
 * Defines the suite once per kind of database. Each call of `open`, in a hook or a test, returns
 * a new database with the schema and no rows; all of them are closed after the suite.
 */
export function forEachDatabase(title: string, body: (open: () => Promise<OpenDatabase>) => void): void {
  describe(`${title}, embedded PostgreSQL`, suiteOn(body, 'embedded'));
  onPostgres(title, body);
}

/** Defines the suite for a server only: rules of SQL hold on the embedded database, too, which is the same program. */
export function onPostgres(title: string, body: (open: () => Promise<OpenDatabase>) => void): void {
  describeOn([postgresServer], `${title}, PostgreSQL`, suiteOn(body, 'postgres'));
}

const suiteOn = (body: (open: () => Promise<OpenDatabase>) => void, kind: DatabaseKind) => () => {
  const opened = createOpened();
  after('close the databases', opened.closeAll);
  body(() => opened.add(openTestDatabase(kind), (database) => database.close()));
};

/**
 * Returns a database with the schema and no rows for the suite that calls this: on the server if there is one, because
 * it accepts the same queries as the embedded database, which takes a second to open. Other parts may be created with
 * the result immediately, but only hooks and tests may query it.
 */
export function testDatabase(): OpenDatabase {
  const opened = createOpened();
  let database: OpenDatabase;
  before('open the database', async () => {
    database = await opened.add(openUsualDatabase(), ({ close }) => close());
  });
  after('close the database', opened.closeAll);
  return {
    now: () => database.now(),
    query: (text, values) => database.query(text, values),
    transaction: (work) => database.transaction(work),
    inTurn: (accountId, work) => database.inTurn(accountId, work),
    ping: () => database.ping(),
    connections: () => database.connections(),
    close: () => database.close(),
    get connection() {
      return database.connection;
    },
    get embedded() {
      return database.embedded;
    },
    get listen() {
      return database.listen;
    },
  };
}

/** Like `openTestDatabase`, on the server if there is one. */
export const openUsualDatabase = (): Promise<OpenDatabase> =>
  openTestDatabase(postgresServer.program === undefined ? 'embedded' : 'postgres');

/** Opens a database with time limits that no slow machine reaches. */
export const openPatiently = (place: Partial<DatabaseOptions>): Promise<OpenDatabase> =>
  openDatabase({ dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR, ...place });

/** Opens a database with the schema and no rows, which the caller closes. */
export async function openTestDatabase(kind: DatabaseKind): Promise<OpenDatabase> {
  const database = await openPatiently(
    kind === 'embedded'
      ? { dataDirectory: await freshDataDirectory() }
      : { databaseUrl: await freshMigratedDatabaseUrl() },
  );
  return {
    ...database,
    now: () => timeOf(database),
    transaction: (work) => database.transaction((tx) => work({ ...tx, now: () => timeOf(database) })),
  };
}

/** Returns the time of a clock that stands still, which the server cannot follow exactly. */
const timeOf = (database: OpenDatabase): string =>
  Date.now === realNow ? database.now() : `'${new Date(systemClock()).toISOString()}'::timestamptz`;

/**
 * Makes a trigger refuse these changes, such as `UPDATE ON accounts FOR EACH ROW`.
 *
 * @param error as RAISE takes it
 * @returns what accepts them again
 */
export async function refuseChanges(database: Queries, changes: string, error = "EXCEPTION 'refused'") {
  await database.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE ${error}; END $$;
    CREATE TRIGGER refuse BEFORE ${changes} EXECUTE FUNCTION refuse()`);
  return () => database.query('DROP FUNCTION refuse CASCADE');
}

/** Runs a statement without triggers, so that no node is notified. */
export const changeUnheard = (database: OpenDatabase, text: string, values: readonly unknown[]): Promise<unknown> =>
  database.transaction(async (tx) => {
    await tx.query('SET LOCAL session_replication_role = replica');
    await tx.query(text, values);
  });

/** Resolves once exactly one session of this database waits for a lock, with a statement that includes this text. */
export const untilOneWaits = (database: Queries, text = ''): Promise<void> =>
  eventually(async () => {
    const waiting = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND position($1 IN query) > 0`;
    expect(await database.query(waiting, [text])).to.have.length(1);
  });

/** Returns how many rows each node of a plan read in all its loops. */
export function rowsIn(plan: unknown): number[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const node = plan as Record<string, unknown>;
  const own = Number(node['Actual Rows'] ?? 0) + Number(node['Rows Removed by Filter'] ?? 0);
  const loops = Number(node['Actual Loops'] ?? 1);
  return [own * loops, ...Object.values(node).flatMap(rowsIn)];
}
