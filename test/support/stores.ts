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
import { PATIENCE } from './patience.ts';
import { freshMigratedDatabaseUrl } from './postgres-server.ts';
import { freshRedisUrl } from './redis-server.ts';
import { describeOn, postgresServer, redisServer } from './requirements.ts';

export interface StoreUnderTest {
  readonly store: TokenStore;
  /**
   * Returns the store of another node: its own connections, the same data.
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

/** Milliseconds by which a suite has moved the time: it moves it for the servers as well. */
export const timeShift = (): number => systemClock() - realNow();

async function postgres(): Promise<Place> {
  const databaseUrl = await freshMigratedDatabaseUrl();
  return (clock) => connectPostgres({ databaseUrl, dataDirectory: '' }, clock);
}

async function connectPostgres(
  options: { databaseUrl?: string; dataDirectory: string },
  clock: Clock,
) {
  const database = await openDatabase({ ...options, timeoutFactor: PATIENCE });
  // PGlite uses the clock of this process, which a test clock has already moved.
  const shift = options.databaseUrl === undefined ? () => 0 : timeShift;
  const store = createPostgresStore({ database, clock, timeShift: shift });
  return { store, close: () => database.close() };
}

async function redis(): Promise<Place> {
  const url = await freshRedisUrl();
  return async (clock) => {
    const client = createRedis(url, { timeoutFactor: PATIENCE });
    await client.connect();
    const store = createRedisStore({ redis: client, clock, timeShift });
    return { store, close: () => store.close() };
  };
}
