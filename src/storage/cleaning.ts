/** Deletes expired data in the background, in small batches. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import type { Queries } from './queries.ts';

const BATCH = 1_000;
const ROUND_PAUSE_MS = 60_000;
const BATCH_PAUSE_MS = 50;

/** Deletes at most `limit` expired rows or records and returns how many it deleted. */
export type CleaningJob = (limit: number) => Promise<number>;

/** A table whose rows expire. The names become part of a statement: never take them from input. */
interface ExpiringTable {
  readonly table: string;
  /** Rows are deleted up to a time in this column. It must have an index. */
  readonly column: string;
}

/**
 * Deletes at most `limit` rows of these tables in which `column` is not after `until`. Skips rows
 * that another transaction has locked, so that two nodes never wait for each other.
 *
 * @param until a number if the columns are numbers.
 * @returns how many rows were deleted.
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

// The thresholds of autovacuum's default settings (PostgreSQL, section "The Autovacuum Daemon").
const DUE_FOR_VACUUM = `
  SELECT quote_ident(relname) AS name FROM pg_stat_user_tables
  WHERE schemaname = 'public' AND n_dead_tup > 50 + 0.2 * n_live_tup`;

/**
 * Returns a job for the embedded database, which has no autovacuum: without this job, each refresh
 * of an authorization would leave space that is never used again.
 */
export const vacuumJob =
  (database: Queries): CleaningJob =>
  async () => {
    for (const { name } of await database.query<{ readonly name: string }>(DUE_FOR_VACUUM)) {
      await database.query(`VACUUM ${name}`);
    }
    // The metrics count removed records, of which these are only old versions.
    return 0;
  };

interface CleaningOutcomes {
  cleaned(job: string, removed: number): void;
  cleaningFailed(job: string): void;
}

/** Starts now and repeats until stopped. Logs a failed job; the next round tries it again. */
export function startCleaning(parts: {
  /** Each key names what its job removes. */
  jobs: Readonly<Record<string, CleaningJob>>;
  log: Logger;
  outcomes: CleaningOutcomes;
}): { round(): Promise<void>; stop(): Promise<void> } {
  const { jobs, log, outcomes } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;

  async function clean(name: string, job: CleaningJob): Promise<void> {
    while (!signal.aborted) {
      const removed = await job(BATCH);
      outcomes.cleaned(name, removed);
      if (removed < BATCH) return;
      await delay(BATCH_PAUSE_MS, undefined, { signal });
    }
  }

  async function round(): Promise<void> {
    for (const [name, job] of Object.entries(jobs)) {
      await clean(name, job).catch((err: unknown) => {
        if (signal.aborted) return;
        outcomes.cleaningFailed(name);
        log.warn({ err, job: name }, 'expired records could not be removed');
      });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await round();
      await delay(ROUND_PAUSE_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  const done = run();
  return {
    /** Runs every job immediately, without waiting for the next scheduled run. */
    round,
    async stop() {
      stopping.abort();
      await done;
    },
  };
}
