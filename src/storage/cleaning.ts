/** Deletes expired data in the background, in small batches. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import type { Queries } from './queries.ts';

const BATCH = 1_000;
const ROUND_PAUSE_MS = 60_000;
const BATCH_PAUSE_MS = 50;

/** Deletes at most `limit` expired rows or records, and returns how many it deleted. */
export type CleaningJob = (limit: number) => Promise<number>;

/** Names of a table and its expiry column. They become part of SQL, so never take them from input. */
interface ExpiringTable {
  readonly table: string;
  /** The column with the time of expiry. It must have an index. */
  readonly column: string;
}

/**
 * Deletes at most `limit` rows in which `column` is not after `until`. Skips rows that another transaction has locked,
 * so that two nodes never wait for each other.
 * @param until a number if the columns are numbers
 * @returns how many rows were deleted
 */
export async function deleteExpired(
  database: Queries,
  tables: readonly ExpiringTable[],
  until: Date | number,
  limit: number,
): Promise<number> {
  let removed = 0;
  for (const { table, column } of tables) {
    const rows = await database.query(
      `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT $2
          FOR UPDATE SKIP LOCKED)) RETURNING 1`,
      [until, limit - removed],
    );
    removed += rows.length;
  }
  return removed;
}

/** Returns a job that deletes the rows of these tables `keptMs` after the time in `column`. */
export const expiryJob =
  (
    { database, clock }: { readonly database: Queries; readonly clock: Clock },
    tables: readonly ExpiringTable[],
    keptMs = 0,
  ): CleaningJob =>
  (limit) =>
    deleteExpired(database, tables, new Date(clock() - keptMs), limit);

/**
 * Like `expiryJob`, but uses the database's clock. Use it for rows that make the service refuse a token or sign-in,
 * because a node with a wrong clock must not delete them.
 */
export const refusalsExpiryJob =
  (database: Queries, tables: readonly ExpiringTable[]): CleaningJob =>
  async (limit) => {
    const [row] = await database.query<{ now: Date }>(`SELECT ${database.now()} AS now`);
    return row ? deleteExpired(database, tables, row.now, limit) : 0;
  };

// Uses the thresholds of autovacuum's default settings (PostgreSQL, section "The Autovacuum Daemon").
const DUE_FOR_VACUUM = `
  SELECT quote_ident(relname) AS name FROM pg_stat_user_tables
  WHERE schemaname = 'public' AND n_dead_tup > 50 + 0.2 * n_live_tup`;

/**
 * Returns a job for the embedded database, which has no autovacuum: without this job, each refresh of an authorization
 * would leave space that is never used again.
 */
export const vacuumJob =
  (database: Queries): CleaningJob =>
  async () => {
    for (const { name } of await database.query<{ readonly name: string }>(DUE_FOR_VACUUM)) {
      await database.query(`VACUUM ${name}`);
    }
    // Return 0: vacuum removes only old versions of records, and the metrics count removed records.
    return 0;
  };

/** Starts now and repeats until stopped. A failed job is logged, and runs again in the next round. */
export function startCleaning(parts: {
  /** The jobs by name. The name says what the job removes. */
  jobs: Readonly<Record<string, CleaningJob>>;
  log: Logger;
  outcomes: { cleaned(job: string, removed: number): void; cleaningFailed(job: string): void };
}): { readonly first: Promise<void>; round(): Promise<void>; stop(): Promise<void> } {
  const { jobs, log, outcomes } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;

  /** Runs one batch. Returns true if there may be more to remove. */
  async function clean(name: string, job: CleaningJob): Promise<boolean> {
    try {
      const removed = await job(BATCH);
      outcomes.cleaned(name, removed);
      return removed >= BATCH;
    } catch (err) {
      if (signal.aborted) return false;
      outcomes.cleaningFailed(name);
      log.warn({ err, job: name }, 'expired records could not be removed');
      return false;
    }
  }

  /** Runs one batch of each job in turn, so that no job delays the other jobs. */
  async function round(until = Number.POSITIVE_INFINITY): Promise<void> {
    let left = Object.entries(jobs);
    while (left.length > 0 && !signal.aborted && performance.now() < until) {
      const unfinished: typeof left = [];
      for (const [name, job] of left) {
        if (!signal.aborted && (await clean(name, job))) unfinished.push([name, job]);
      }
      left = unfinished;
      if (left.length > 0) await delay(BATCH_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  const { promise: first, resolve: firstIsOver } = Promise.withResolvers<void>();
  async function run(): Promise<void> {
    while (!signal.aborted) {
      // End the round after a minute, so that finished jobs run again although other jobs still have work.
      const next = performance.now() + ROUND_PAUSE_MS;
      await round(next);
      firstIsOver();
      const pause = Math.max(BATCH_PAUSE_MS, next - performance.now());
      await delay(pause, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  const done = run();
  return {
    /** Resolves after the first round; never rejects. */
    first,
    /** Runs every job now, in addition to the scheduled rounds. */
    round: () => round(),
    async stop() {
      stopping.abort();
      await done;
    },
  };
}
