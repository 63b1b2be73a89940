/** Chooses where tokens are stored: in Redis if it is configured, otherwise in PostgreSQL. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createPostgresStore } from './postgres-store.ts';
import type { Database } from './queries.ts';
import {
  connectRedis,
  createRedis,
  ensureRedisIdentity,
  type RedisProblem,
  redisProblems,
  reply,
} from './redis/redis.ts';
import { createRedisStore } from './redis/store.ts';
import { postgresLimits, redisLimits, type SharedLimits } from './shared-limits.ts';
import type { TokenStore } from './token-store.ts';

/** Thrown at the start if Redis evicts keys, because Redis would then lose tokens without an error. */
export class UnsafeRedis extends Error {
  readonly code = 'unsafe_redis';

  constructor({ message, remedy }: RedisProblem) {
    super(`${message}: ${remedy}`);
    this.name = 'UnsafeRedis';
  }
}

/** @throws UnsafeRedis if Redis evicts keys, and StorageUnavailable if Redis does not answer */
export async function openTokenStore(parts: {
  redisUrl?: string | undefined;
  database: Database;
  clock: Clock;
  timeoutFactor?: number;
  /** Milliseconds to add to the clock of the store; only tests use it. */
  timeShift?: () => number;
  /** Absent in operator commands. */
  log?: Pick<Logger, 'warn'>;
}): Promise<{
  readonly store: TokenStore;
  /** The rate limits that all nodes share. Attempts are counted in the token store. */
  readonly limits: SharedLimits;
  /** Returns the clock of Redis, in milliseconds since the epoch; absent without Redis. */
  readonly time?: () => Promise<number>;
  /** Returns the random id of this Redis, to find out whether nodes use the same Redis; absent without Redis. */
  readonly identity?: () => Promise<string | undefined>;
}> {
  const { redisUrl, database, clock, timeoutFactor = 1, timeShift = () => 0, log } = parts;
  if (redisUrl === undefined) {
    const shared = { database, clock, timeShift, log };
    return { store: createPostgresStore(shared), limits: postgresLimits(shared) };
  }
  const redis = createRedis(redisUrl, { timeoutFactor });
  try {
    await connectRedis(redis);
    for (const problem of await redisProblems(redis)) {
      const { setting, isUnknown, message, remedy } = problem;
      if (setting === 'maxmemory-policy' && !isUnknown) throw new UnsafeRedis(problem);
      log?.warn(`${message}: ${remedy}`);
    }
    const time = async (): Promise<number> => {
      const [seconds, microseconds] = await reply(redis.time());
      return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    };
    return {
      store: createRedisStore({ redis, clock, timeShift }),
      limits: redisLimits(redis, log),
      time,
      identity: () => ensureRedisIdentity(redis),
    };
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}
