/** Chooses where tokens live: in Redis where one is configured, else beside everything else. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import type { ChangeFeed } from './change-feed.ts';
import { createKnownMasters } from './known-masters.ts';
import { createPostgresStore } from './postgres-store.ts';
import type { Database } from './queries.ts';
import { createMasterGuard, type EndsRepeater } from './redis/master-guard.ts';
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

interface OpenTokenStore {
  readonly store: TokenStore;
  /** Counted in the same place, over the same connections. */
  readonly limits: SharedLimits;
  /** Milliseconds since the epoch, as the clock of Redis says; absent where there is none. */
  readonly time?: () => Promise<number>;
  /** The random id that is kept in this Redis, by which nodes compare theirs; absent without Redis. */
  readonly identity?: () => Promise<string | undefined>;
}

/** What a node needs that must not ask a Redis that may have lost ends. A command goes without. */
interface Guarding {
  readonly repeater: EndsRepeater;
  readonly changes: Pick<ChangeFeed, 'isLive' | 'onChange'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Told how many recorded ends were alive again. */
  readonly onRepeat: (revived: number) => void;
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
  guarding,
}: {
  redisUrl?: string | undefined;
  acceptVolatileRedis: boolean;
  database: Database;
  clock: Clock;
  /** As of `createRedis`. */
  patience?: number;
  /** Milliseconds to add to what a store says the time is: for tests, which move it. */
  timeShift?: () => number;
  guarding?: Guarding;
}): Promise<OpenTokenStore> {
  if (redisUrl === undefined) {
    const parts = { database, clock, timeShift };
    return { store: createPostgresStore(parts), limits: postgresLimits(parts) };
  }
  const guard =
    guarding &&
    createMasterGuard({
      ...guarding,
      clock,
      connect: () => createRedis(redisUrl, { patience }),
      known: createKnownMasters(database),
    });
  const redis = createRedis(redisUrl, { patience, ...(guard && { accepts: guard.accepts }) });
  try {
    await guard?.verify();
    await connectRedis(redis);
    const problems = (await redisProblems(redis)).filter(
      ({ setting }) => !(acceptVolatileRedis && setting === 'appendonly'),
    );
    if (problems.length > 0) throw new UnsafeRedis(problems);
    const time = async (): Promise<number> => {
      const [seconds, microseconds] = await reply(redis.time());
      return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    };
    guard?.watch(redis);
    return {
      store: createRedisStore({ redis, clock, timeShift, ...(guard && { guard }) }),
      limits: redisLimits(redis),
      time,
      identity: () => ensureRedisIdentity(redis),
    };
  } catch (error) {
    guard?.close();
    redis.disconnect();
    throw error;
  }
}
