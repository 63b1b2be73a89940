/** The only access to PostgreSQL: a `pg` pool, on a real server or on the embedded one. */
import pg from 'pg';
import { createAccountTurns } from './account-turns.ts';
import { type EmbeddedPostgres, type Sharing, serveEmbeddedPostgres } from './embedded/postgres.ts';
import type { Listen } from './embedded/server.ts';
import type { Database, Queries } from './queries.ts';
import { StorageUnavailable } from './storage-unavailable.ts';

/**
 * The timeouts of one call. A request may wait for a connection and then for an answer, and must end within 2 s even if
 * the server does not respond.
 */
const CONNECT_TIMEOUT_MS = 700;
const QUERY_TIMEOUT_MS = 900;

/** Without a URL, the embedded server in the data directory is opened. */
export interface DatabaseOptions {
  readonly databaseUrl?: string | undefined;
  readonly dataDirectory: string;
  /** `own` for the service; `share` for an operator command, which may open the embedded database at the same time. */
  readonly sharing?: Sharing;
  readonly databaseConnections?: number;
  /** Multiplies the timeouts of a call. Set it only for callers that may wait longer than 2 s. */
  readonly timeoutFactor?: number;
  /**
   * How long the server waits for the next statement of a transaction. By default the timeout of a statement; for the
   * embedded server, 10 s.
   */
  readonly maxIdleMs?: number;
  /** Returns the milliseconds to add to the clock of the server. Only tests use it. */
  readonly timeShift?: () => number;
}

export interface OpenDatabase extends Database {
  /**
   * Writes to the database, so it fails if the server is read-only or has no disk space left.
   * @returns the server's clock, in milliseconds since the epoch
   */
  ping(): Promise<number>;
  /** How to open a connection outside the pool, for migrations and LISTEN. */
  readonly connection: pg.ClientConfig;
  /** Listens for notifications of the embedded database in this process; undefined for any other database. */
  readonly listen: Listen | undefined;
  /** The connections of the pool, and the queries that wait for a connection. */
  connections(): { readonly used: number; readonly idle: number; readonly waiting: number };
}

/**
 * Opens the pool. A real server is not contacted before the first query.
 *
 * @throws EmbeddedPostgresInUse, DataDirectoryRefused (see `serveEmbeddedPostgres`)
 */
export async function openDatabase(options: DatabaseOptions): Promise<OpenDatabase> {
  const embedded =
    options.databaseUrl === undefined
      ? await serveEmbeddedPostgres(options.dataDirectory, options.sharing ?? 'share', options.maxIdleMs)
      : undefined;
  const connection: pg.ClientConfig = embedded
    ? { host: embedded.socketDirectory, database: 'postgres', user: 'postgres' }
    : { connectionString: options.databaseUrl };
  const { timeoutFactor = 1, timeShift = () => 0 } = options;
  const limit = QUERY_TIMEOUT_MS * timeoutFactor;
  const pool = new pg.Pool({
    ...connection,
    application_name: 'gatehouse',
    max: options.databaseConnections ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS * timeoutFactor,
    // Set the limits on the server as well: otherwise the statement of a disconnected client would keep its locks.
    ...(embedded ? {} : serverLimits(limit, options.maxIdleMs)),
    ...(embedded ? {} : { onConnect: (client: pg.ClientBase) => turnOffJit(client, limit) }),
    keepAlive: true,
  });
  // The pool emits `error` if an idle connection is lost. Unhandled, it would end the process.
  pool.on('error', ignore);
  return poolDatabase({
    pool,
    connection,
    embedded,
    // Use a longer timeout than the server: the error for a slow statement then proves that the server still answers.
    timeoutMs: Math.round(limit * 1.1),
    now: () => timeByServer(timeShift()),
  });
}

/** Returns host, port and database of a URL. A list of hosts (Sentinel, Cluster) is returned unchanged. */
export const placeOf = (url: string): string =>
  url
    .replace(/\?.*$/s, '')
    .replace(/^[a-z0-9+]+:\/\//i, '')
    // Cut at the last @, because a password may contain an @ that is not encoded.
    .replace(/^.*@/s, '');

/** Limits for a process that stops or disappears inside a transaction: its locks would block all other nodes. */
const serverLimits = (limit: number, idleLimit = limit): pg.ClientConfig => ({
  statement_timeout: limit,
  lock_timeout: limit,
  idle_in_transaction_session_timeout: idleLimit,
});

/**
 * PostgreSQL takes 160 ms and more for the JIT compilation of a statement that it expects to read 300,000 rows. All
 * statements of Gatehouse take less time. `SET jit = off` is sent once for each connection, because a pooler would
 * refuse `jit` as a start-up parameter.
 */
async function turnOffJit(client: pg.ClientBase, limit: number): Promise<void> {
  // Use a third of the query timeout, because a request also waits for the connection and for its own query.
  const query = { text: 'SET jit = off', query_timeout: limit / 3 };
  await client.query(query);
}

// Use a subquery: it is evaluated only once, so PostgreSQL can search its value in an index.
const timeByServer = (shift: number): string =>
  `(SELECT date_trunc('milliseconds', clock_timestamp()${shift === 0 ? '' : ` + interval '${shift} ms'`}))`;

/** The message of `pg-pool` for a request that waited too long for a connection. */
const NO_CONNECTION = 'timeout exceeded when trying to connect';

const ignore = (): void => {};

interface PoolParts {
  readonly pool: pg.Pool;
  readonly connection: pg.ClientConfig;
  readonly embedded: EmbeddedPostgres | undefined;
  readonly timeoutMs: number;
  readonly now: () => string;
}

function poolDatabase({ pool, connection, embedded, timeoutMs, now }: PoolParts): OpenDatabase {
  // Statements cannot have names on the embedded server, because its connections share one session.
  const nameOf = (name: string | undefined) => (embedded ? undefined : name);
  let connected = 0;
  pool.on('connect', () => {
    connected += 1;
  });
  pool.on('remove', () => {
    connected -= 1;
  });
  /** If the pool has connections, but a request got none, the other requests were the cause, and not the server. */
  function throwBusy(error: unknown): never {
    const { cause } = error instanceof StorageUnavailable ? error : {};
    const waited = cause instanceof Error && cause.message === NO_CONNECTION && connected > 0;
    throw waited ? new StorageUnavailable('postgresql', cause, 'too_many_waiting') : error;
  }

  /** Runs `work` on a connection of the pool. If `work` throws, its connection is closed. */
  async function onConnection<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await pool.connect().catch(throwUnavailable).catch(throwBusy);
    // Keep the cause of a lost connection, because the next statement's error does not name it. Without a listener,
    // the event `error` would end the process.
    let lost: Error | undefined;
    const keep = (error: Error): void => {
      lost ??= error;
    };
    client.on('error', keep);
    let hasFailed = true;
    try {
      const result = await work(client);
      hasFailed = false;
      return result;
    } catch (error) {
      throw lost && error instanceof StorageUnavailable ? new StorageUnavailable('postgresql', lost) : error;
    } finally {
      client.off('error', keep);
      client.release(hasFailed);
    }
  }

  async function run<Row extends object>(
    client: pg.PoolClient,
    text: string,
    values: readonly unknown[] = [],
    name?: string,
  ): Promise<Row[]> {
    const known = nameOf(name);
    const query = { text, values: [...values], ...(known && { name: known }) };
    return (await answerTo<Row>(client, query, timeoutMs)).rows;
  }

  return {
    now,
    connection,
    embedded: embedded !== undefined,
    listen: embedded?.listen,
    inTurn: createAccountTurns(),
    query: (text, values, name) => onConnection((client) => run(client, text, values, name)),

    async ping() {
      const [row] = await onConnection((client) =>
        run<{ now: string }>(
          client,
          `UPDATE write_probe SET at = clock_timestamp() WHERE fill_temporary_file()
            RETURNING extract(epoch FROM at) * 1000 AS now`,
        ),
      );
      return Number(row?.now);
    },

    connections() {
      const { totalCount, idleCount: idle, waitingCount: waiting } = pool;
      return { used: totalCount - idle, idle, waiting };
    },

    async transaction(work) {
      const outcome = await onConnection(async (client) => {
        try {
          const tx: Queries = { now, query: (text, values, name) => run(client, text, values, name) };
          await tx.query('BEGIN');
          const result = await work(tx);
          const { command } = await answerTo(client, { text: 'COMMIT' }, timeoutMs);
          // PostgreSQL answers COMMIT with ROLLBACK if a statement failed and `work` ignored the failure.
          if (command === 'ROLLBACK') throw new Error('a statement of the transaction had failed');
          return { result };
        } catch (error) {
          if (error instanceof StorageUnavailable || isOfLostPlan(error)) throw error;
          await run(client, 'ROLLBACK').catch(() => {
            throw error;
          });
          return { error };
        }
      });
      if ('error' in outcome) throw outcome.error;
      return outcome.result;
    },

    async close() {
      await pool.end();
      await embedded?.close();
    },
  };
}

/**
 * Uses a callback and its own timer: with a promise or `query_timeout`, pg assigns a function literal to a property of
 * the query, which then survives with all its rows (see `BriefCommand` in redis.ts).
 */
async function answerTo<Row extends object>(
  client: pg.PoolClient,
  query: pg.QueryConfig,
  timeoutMs: number,
): Promise<pg.QueryResult<Row>> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`PostgreSQL did not answer within ${timeoutMs} ms`)), timeoutMs);
      client.query<Row>(query, (error, result) => (error ? reject(error) : resolve(result)));
    });
  } catch (error) {
    // Replace the stack, which begins in the parser of pg, with one that names the caller.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw unavailable(error) ?? error;
  } finally {
    clearTimeout(timer);
  }
}

function throwUnavailable(error: unknown): never {
  throw unavailable(error) ?? error;
}

/**
 * True if a named statement no longer exists on the connection because a pooler discarded it, or has other columns
 * since a migration. The statement would always fail on this connection.
 */
const isOfLostPlan = (error: unknown): error is Error =>
  error instanceof pg.DatabaseError && ['26000', '0A000'].includes(error.code ?? '');

/**
 * SQLSTATEs of a server that cannot serve the request at present. They stand for connection, authentication, unknown
 * database, resources, operator intervention, system error, read-only, a transaction that was idle for too long, lock
 * timeout, and missing privileges.
 */
const UNAVAILABLE_STATES = /^(08|28|3D000|42501|53|57|58|25006|25P03|55P03)/;

function unavailable(error: unknown): StorageUnavailable | undefined {
  if (error instanceof StorageUnavailable) return error;
  // Any other SQLSTATE (a pg.DatabaseError) is a bug of Gatehouse; an error without SQLSTATE comes from the network.
  if (error instanceof pg.DatabaseError && !UNAVAILABLE_STATES.test(error.code ?? '')) {
    return undefined;
  }
  return new StorageUnavailable('postgresql', error);
}
