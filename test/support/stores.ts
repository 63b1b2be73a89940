/** Suites that run on each token store: PostgreSQL, embedded or a server, and Redis. */
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { createRedisStore } from '../../src/storage/redis/store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { realNow } from './clock.ts';
import { freshDataDirectory } from './embedded-postgres.ts';
import { createOpened } from './opened.ts';
import { freshMigratedDatabaseUrl } from './postgres-server.ts';
import { freshRedisUrl } from './redis-server.ts';
import { describeOn, postgresServer, redisServer } from './requirements.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

export interface StoreUnderTest {
  readonly store: TokenStore;
  /**
   * Returns the store of another node: with its own connections and the same data.
   *
   * @param aheadSeconds how far the clock of that node is ahead
   */
  anotherNode(aheadSeconds?: number): Promise<TokenStore>;
}

/**
 * Defines the suite once per store. Each call of `open`, in a hook or a test, returns an empty
 * store; all of them are closed after the suite. Their clock follows `createTestClock`.
 */
export function forEachStore(title: string, body: (open: () => Promise<StoreUnderTest>) => void) {
  const suite = (place: () => Promise<Place>) => () => {
    const opened = createOpened();
    after('close the stores', opened.closeAll);
    body(async () => {
      const connect = await place();
      const node = async (aheadSeconds = 0): Promise<TokenStore> => {
        const clock: Clock = () => systemClock() + aheadSeconds * 1000;
        const { store } = await opened.add(connect(clock), ({ close }) => close());
        return store;
      };
      return { store: await node(), anotherNode: node };
    });
  };
  describe(`${title}, embedded PostgreSQL`, suite(embeddedPostgres));
  describeOn([postgresServer], `${title}, PostgreSQL`, suite(postgres));
  describeOn([redisServer], `${title}, Redis`, suite(redis));
}

/** Connects a node to an empty store, which several nodes may share. */
type Place = (clock: Clock) => Promise<{ store: TokenStore; close: () => Promise<void> }>;

async function embeddedPostgres(): Promise<Place> {
  const dataDirectory = await freshDataDirectory();
  return (clock) => connectPostgres({ dataDirectory }, clock);
}

/** Returns by how many milliseconds a suite has moved the time, which the stores' servers must follow. */
export const timeShift = (): number => systemClock() - realNow();

async function postgres(): Promise<Place> {
  const databaseUrl = await freshMigratedDatabaseUrl();
  return (clock) => connectPostgres({ databaseUrl, dataDirectory: '' }, clock);
}

async function connectPostgres(options: { databaseUrl?: string; dataDirectory: string }, clock: Clock) {
  const database = await openDatabase({ ...options, timeoutFactor: TIMEOUT_FACTOR });
  // PGlite uses the clock of this process, which a test clock has already moved.
  const shift = options.databaseUrl === undefined ? () => 0 : timeShift;
  const store = createPostgresStore({ database, clock, timeShift: shift });
  return { store, close: () => database.close() };
}

async function redis(): Promise<Place> {
  const url = await freshRedisUrl();
  return async (clock) => {
    const client = createRedis(url, { timeoutFactor: TIMEOUT_FACTOR });
    await client.connect();
    const store = createRedisStore({ redis: client, clock, timeShift });
    return { store, close: () => store.close() };
  };
}
