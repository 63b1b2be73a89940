/** Rate limits that all nodes share. Attempts are counted in Redis or PostgreSQL. */
import type { Cluster, Redis } from 'ioredis';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import type { AttemptLimit, AttemptLimitOptions, CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import { sha256 } from '../base/random-id.ts';
import { type CleaningJob, deleteExpired } from './cleaning.ts';
import type { Queries } from './queries.ts';
import { reply } from './redis/redis.ts';

export interface SharedLimits {
  readonly createAttemptLimit: CreateAttemptLimit;
  /** Deletes the counts of windows that have ended. Does nothing if the store deletes them itself. */
  readonly removeExpired: CleaningJob;
}

/** Receives a warning if the shared store fails and this process counts only its own attempts. */
type LimitLog = { warn(details: object, message: string): void } | undefined;

/** Each step is a script with one key, so it works on a Cluster. Redis expires the windows. */
export function redisLimits(redis: Redis | Cluster, log: LimitLog): SharedLimits {
  return {
    createAttemptLimit: (options) =>
      attemptLimit(options, log, new RateLimiterRedis({ ...inCommon(options), storeClient: redis }), reply),
    removeExpired: async () => 0,
  };
}

export function postgresLimits(parts: { database: Queries; clock: Clock; log: LimitLog }): SharedLimits {
  const { database, clock, log } = parts;
  // Remove the library's statement names, because the embedded server allows no names (see database.ts).
  const storeClient = {
    async query({ text, values }: { text: string; values: readonly unknown[] }) {
      const rows = await database.query(text, values);
      return { rows, rowCount: rows.length };
    },
  };
  const table = {
    tableName: 'rate_limits',
    tableCreated: true,
    // The cleaning job deletes ended windows, so the library needs no timers.
    clearExpiredByTimeout: false,
  };
  return {
    createAttemptLimit: (options) =>
      attemptLimit(
        options,
        log,
        new RateLimiterPostgres({
          ...inCommon(options),
          ...table,
          storeClient,
          storeType: 'client',
        }),
      ),

    removeExpired: (limit) => deleteExpired(database, [{ table: 'rate_limits', column: 'expire' }], clock(), limit),
  };
}

const inCommon = ({ name, attempts, windowSeconds }: AttemptLimitOptions) => ({
  keyPrefix: `gh:l:${name}`,
  points: attempts,
  duration: windowSeconds,
  // After the first refusal, refuse the attempts in the rest of the window without asking the store.
  inMemoryBlockOnConsumed: attempts + 1,
});

/** Minimum time between two log entries about an unavailable store. */
const LOG_PAUSE_MS = 60_000;

/** @param awaitReply awaits the store's reply, and throws StorageUnavailable if the store fails */
function attemptLimit(
  options: AttemptLimitOptions,
  log: LimitLog,
  shared: RateLimiterAbstract,
  awaitReply: <Value>(pending: Promise<Value>) => Promise<Value> = (pending) => pending,
): AttemptLimit {
  const { name, attempts, windowSeconds, onStoreUnavailable } = options;
  const own = new RateLimiterMemory({ points: attempts, duration: windowSeconds });
  let loggedAt = Number.NEGATIVE_INFINITY;

  async function ask<Result>(question: (limiter: RateLimiterAbstract) => Promise<Result>) {
    try {
      return await awaitReply(question(shared));
    } catch (err) {
      if (onStoreUnavailable === 'throw') throw err;
      if (performance.now() - loggedAt > LOG_PAUSE_MS) {
        log?.warn({ err, limit: name }, 'attempts are counted by this process only');
        loggedAt = performance.now();
      }
      return await question(own);
    }
  }

  return {
    async count(key) {
      const refused = await ask((limiter) => refusalOf(limiter.consume(keyOf(key))));
      return (
        refused && {
          seconds: Math.max(1, Math.ceil(refused.msBeforeNext / 1000)),
          isFirst: refused.consumedPoints === attempts + 1,
        }
      );
    },

    async refund(key) {
      await ask((limiter) => limiter.reward(keyOf(key)));
    },

    async forget(key) {
      await ask((limiter) => limiter.delete(keyOf(key)));
    },
  };
}

/** Returns the RateLimiterRes with which the library rejects a refused attempt. Rejects if the store failed. */
function refusalOf(consuming: Promise<RateLimiterRes>): Promise<RateLimiterRes | undefined> {
  return consuming.then(
    () => undefined,
    (rejected: unknown) => {
      if (rejected instanceof RateLimiterRes) return rejected;
      throw rejected;
    },
  );
}

/** Hash the key, so that it is short, and does not identify a user in the store. */
const keyOf = (key: string): string => sha256(key).slice(0, 22);
