/** Chooses where tokens live: in Redis where one is configured, else beside everything else. */
import type { Clock } from '../clock.ts';
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

/** Redis is set up so that it would lose tokens: the service does not start on it. */
export class UnsafeRedis extends Error {
  readonly code = 'unsafe_redis';
  readonly problems: readonly RedisProblem[];

  constructor(problems: readonly RedisProblem[]) {
    super(problems.map(({ message, remedy }) => `${message}: ${remedy}`).join('\n'));
    this.name = 'UnsafeRedis';
    this.problems = problems;
  }
}

export interface OpenTokenStore {
  readonly store: TokenStore;
  /** Counted in the same place, over the same connections. */
  readonly limits: SharedLimits;
  /** Milliseconds since the epoch, as the clock of Redis says; absent where there is none. */
  readonly time?: () => Promise<number>;
  /** The random id that is kept in this Redis, by which nodes compare theirs; absent without Redis. */
  readonly identity?: () => Promise<string | undefined>;
}

/**
 * @throws UnsafeRedis when Redis evicts, or keeps nothing on disk and the operator did not accept
 *   that.
 * @throws StorageUnavailable when Redis does not answer.
 */
export async function openTokenStore({
  redisUrl,
  acceptVolatileRedis,
  database,
  clock,
  patience = 1,
  timeShift = () => 0,
}: {
  redisUrl?: string | undefined;
  acceptVolatileRedis: boolean;
  database: Database;
  clock: Clock;
  /** As of `createRedis`. */
  patience?: number;
  /** Milliseconds to add to what a store says the time is: for tests, which move it. */
  timeShift?: () => number;
}): Promise<OpenTokenStore> {
  if (redisUrl === undefined) {
    const parts = { database, clock, timeShift };
    return { store: createPostgresStore(parts), limits: postgresLimits(parts) };
  }
  const redis = createRedis(redisUrl, { patience });
  try {
    await connectRedis(redis);
    const problems = (await redisProblems(redis)).filter(
      ({ setting }) => !(acceptVolatileRedis && setting === 'appendonly'),
    );
    if (problems.length > 0) throw new UnsafeRedis(problems);
    const time = async (): Promise<number> => {
      const [seconds, microseconds] = await reply(redis.time());
      return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    };
    return {
      store: createRedisStore({ redis, clock, timeShift }),
      limits: redisLimits(redis),
      time,
      identity: () => ensureRedisIdentity(redis),
    };
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}
