/** Reports the state of PostgreSQL to operators: how fast it answers, and whether NOTIFY works. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { randomId } from '../base/random-id.ts';
import type { OpenDatabase } from './database.ts';
import type { Queries } from './queries.ts';

export interface DatabaseReport {
  readonly version: string;
  /** Duration of a simple query in milliseconds, the shortest of several measurements. */
  readonly milliseconds: number;
}

const ATTEMPTS = 5;
const CHANNEL = 'gatehouse_doctor';
/** Maximum wait for a notification, much longer than one takes. */
const NOTIFY_TIMEOUT_MS = 5_000;

/** @throws StorageUnavailable */
export async function reportDatabase(database: OpenDatabase) {
  const samples: DatabaseReport[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const startedAt = performance.now();
    const [row] = await database.query<{ version: string }>("SELECT current_setting('server_version') AS version");
    samples.push({ version: row?.version ?? '', milliseconds: performance.now() - startedAt });
  }
  samples.sort((a, b) => a.milliseconds - b.milliseconds);
  return samples[0] as DatabaseReport;
}

/**
 * Listens on one connection and notifies on another, as nodes do to announce changes.
 *
 * @returns the milliseconds until the notification arrived; undefined if it did not arrive, because a pooler that gives
 * each transaction another connection loses notifications.
 */
export async function notificationMilliseconds(database: OpenDatabase): Promise<number | undefined> {
  const client = new pg.Client({
    ...database.connection,
    application_name: 'gatehouse doctor',
    connectionTimeoutMillis: NOTIFY_TIMEOUT_MS,
    query_timeout: NOTIFY_TIMEOUT_MS,
  });
  client.on('error', () => {});
  const word = randomId('', 16);
  const heard = new Promise<true>((resolve) => {
    client.on('notification', ({ payload }) => payload === word && resolve(true));
  });
  try {
    await client.connect();
    await client.query(`LISTEN ${CHANNEL}`);
    const startedAt = performance.now();
    await database.query('SELECT pg_notify($1, $2)', [CHANNEL, word]);
    const outcome = await Promise.race([heard, delay(NOTIFY_TIMEOUT_MS, false, { ref: false })]);
    return outcome ? performance.now() - startedAt : undefined;
  } catch {
    return undefined;
  } finally {
    client.end().catch(() => {});
  }
}

/** An owner of some of our tables whose rights this role does not have. */
export interface ForeignOwner {
  readonly owner: string;
  readonly tables: number;
  /** False if this role may not read the tables. A migration fails even if it may. */
  readonly isReadable: boolean;
}

/** Returns the foreign owners; tables of other programs in the same schema do not count. */
export const foreignOwners = (database: Queries, names: readonly string[]): Promise<ForeignOwner[]> =>
  // A role without the right to use the schema has no current schema.
  database.query(
    `SELECT pg_get_userbyid(relowner) AS owner, count(*)::int AS tables,
        has_table_privilege(pg_class.oid, 'SELECT') AS "isReadable"
      FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = coalesce(current_schema(), 'public') AND relkind IN ('r', 'p') AND relname = ANY($1)
        AND NOT pg_has_role(relowner, 'USAGE')
      GROUP BY relowner, "isReadable" ORDER BY owner`,
    [names],
  );

/** Returns the limits of open connections that apply to this role, and how to raise each. */
export const connectionLimits = (
  database: Queries,
): Promise<{ readonly whose: string; readonly limit: number; readonly remedy: string }[]> =>
  database.query(
    `SELECT 'the role ' || rolname AS whose, rolconnlimit AS limit,
        format('ALTER ROLE %I CONNECTION LIMIT -1', rolname) AS remedy
      FROM pg_roles WHERE rolname = current_user AND rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL SELECT 'the database ' || datname, datconnlimit, format('ALTER DATABASE %I CONNECTION LIMIT -1', datname)
      FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0
    UNION ALL SELECT 'the server', current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int, 'max_connections in postgresql.conf'`,
  );
