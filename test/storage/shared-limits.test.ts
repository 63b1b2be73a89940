/** Attempts are counted in a store for all nodes; if it is unavailable, each process counts. */
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { AttemptLimit } from '../../src/base/attempt-limits.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { postgresLimits, redisLimits, type SharedLimits } from '../../src/storage/shared-limits.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { createOpened } from '../support/opened.ts';
import { freshMigratedDatabaseUrl, startPostgresServer } from '../support/postgres-server.ts';
import { freshRedisUrl, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { ticksOf, windowOf } from '../support/stopwatch.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

const WINDOW = 60;

interface Node {
  readonly limits: SharedLimits;
  /** Each stored key with its attempts and the milliseconds until it expires. */
  entries(): Promise<{ key: string; attempts: number; milliseconds: number }[]>;
  /** Makes the window expire, even in a store that has its own clock. */
  pass(): Promise<void>;
  empty(): Promise<void>;
}

let warnings: string[] = [];
const log = { warn: (_: object, message: string) => void warnings.push(message) };

const limitOf = ({ limits }: Node, attempts: number, name = 'test'): AttemptLimit =>
  limits.createAttemptLimit({
    name,
    attempts,
    windowSeconds: WINDOW,
    onStoreUnavailable: 'count here',
  });

/** Defines the suite. @param open opens an empty store, and returns a function that connects a node to it. */
function limitsSuite(open: () => Promise<() => Promise<{ node: Node; close(): Promise<void> }>>) {
  return () => {
    const opened = createOpened();
    let one: Node;
    let two: Node;

    before(async () => {
      const connect = await open();
      const [first, second] = [
        await opened.add(connect(), ({ close }) => close()),
        await opened.add(connect(), ({ close }) => close()),
      ];
      one = first.node;
      two = second.node;
    });
    after(opened.closeAll);
    beforeEach(async () => {
      warnings = [];
      await one.empty();
    });

    it('attempts that one node counts also count at the other node', async () => {
      const [here, there] = [limitOf(one, 3), limitOf(two, 3)];
      const left = windowOf(WINDOW);
      expect(await here.count('a')).to.equal(undefined);
      expect(await here.count('a')).to.equal(undefined);
      expect(await there.count('a')).to.equal(undefined);
      const over = await there.count('a');
      expect(over?.seconds).to.be.within(left(), WINDOW);
      expect(await here.count('a')).to.include({ isFirst: false });
      expect(await here.count('b')).to.equal(undefined);
      expect(await limitOf(one, 3, 'other').count('a')).to.equal(undefined);
      expect(warnings).to.deep.equal([]);
    });

    it('two nodes together allow no more parallel attempts than the limit, and report the first excess attempt once', async () => {
      const nodes = [limitOf(one, 10), limitOf(two, 10)];
      const counted = await Promise.all(Array.from({ length: 40 }, (_, index) => nodes[index % 2]?.count('a')));
      expect(counted.filter((over) => over === undefined)).to.have.length(10);
      expect(counted.filter((over) => over?.isFirst)).to.have.length(1);
    });

    it('after a refusal, a process refuses attempts until the window ends, without asking the store', async () => {
      const limit = limitOf(one, 3);
      for (let times = 0; times < 10; times += 1) await limit.count('a');
      expect((await one.entries()).map(({ attempts }) => attempts)).to.deep.equal([4]);
    });

    it('a counted attempt can be refunded, and a success resets the count', async () => {
      const limit = limitOf(one, 2);
      for (let times = 0; times < 5; times += 1) {
        expect(await limit.count('a')).to.equal(undefined);
        await limit.refund('a');
      }
      await limit.count('a');
      await limit.count('a');
      await limit.forget('a');
      expect(await limitOf(two, 2).count('a')).to.equal(undefined);
      expect(await limit.count('a')).to.equal(undefined);
      expect(await limit.count('a')).to.include({ isFirst: true });
      await limit.forget('a');
      expect(await limit.count('a')).to.equal(undefined);
    });

    it('the count of a limit expires a fixed time after the first attempt, however many attempts follow', async () => {
      const limit = limitOf(one, 1);
      const left = windowOf(WINDOW);
      for (let times = 0; times < 5; times += 1) await limit.count('a');
      const [entry, ...others] = await one.entries();
      expect(others).to.deep.equal([]);
      expect(entry?.milliseconds).to.be.within(left() * 1000, WINDOW * 1000);
      await one.pass();
      expect(await limitOf(two, 1).count('a')).to.equal(undefined);
    });

    it('the stored counter of a limit contains only a hash of the limited name or address', async () => {
      await limitOf(one, 1, 'sign_in').count(`grace@example.test ${'x'.repeat(10_000)}\0`);
      const [entry] = await one.entries();
      expect(entry?.key).to.match(/^gh:l:sign_in:[A-Za-z0-9_-]{22}$/);
    });

    it('cleaning removes only expired limits', async () => {
      await limitOf(one, 1).count('a');
      await one.pass();
      await limitOf(one, 1).count('b');
      while ((await one.limits.removeExpired(10)) > 0);
      const entries = await one.entries();
      expect(entries).to.have.length(1);
      expect(entries[0]?.milliseconds).to.be.above(0);
    });
  };
}

let time: TestClock | undefined;

/** A node on PostgreSQL, which uses the clock of the test. */
async function postgresNode(place: { databaseUrl?: string; dataDirectory: string }, timeoutFactor = TIMEOUT_FACTOR) {
  const database = await openDatabase({ ...place, timeoutFactor });
  const node: Node = {
    limits: postgresLimits({ database, clock: systemClock, log }),
    async entries() {
      const rows = await database.query<{ key: string; attempts: number; expire: string }>(
        'SELECT key, points AS attempts, expire FROM rate_limits',
      );
      const now = Date.now();
      return rows.map(({ expire, ...row }) => ({ ...row, milliseconds: Number(expire) - now }));
    },
    async pass() {
      time = createTestClock();
      time.advance(WINDOW + 1);
    },
    empty: async () => void (await database.query('DELETE FROM rate_limits')),
  };
  return { node, close: () => database.close() };
}

/** A node on Redis, which has its own clock, so the test makes its keys expire. */
async function redisNode(url: string, timeoutFactor = TIMEOUT_FACTOR) {
  const redis = createRedis(url, { timeoutFactor }) as Redis;
  await redis.connect();
  const node: Node = {
    limits: redisLimits(redis, log),
    async entries() {
      const keys = await redis.keys('*');
      return Promise.all(
        keys.map(async (key) => ({
          key,
          attempts: Number(await redis.get(key)),
          milliseconds: await redis.pttl(key),
        })),
      );
    },
    async pass() {
      for (const key of await redis.keys('*')) await redis.pexpire(key, 0);
      // Start with a new clock, because refusals that the process caches expire by its own clock.
      time = createTestClock();
      time.advance(WINDOW + 1);
    },
    empty: async () => void (await redis.flushdb()),
  };
  return { node, close: async () => redis.disconnect() };
}

afterEach('restore the real time', () => {
  time?.restore();
  time = undefined;
});

const postgres = limitsSuite(async () => {
  const databaseUrl = await freshMigratedDatabaseUrl();
  return () => postgresNode({ databaseUrl, dataDirectory: '' });
});
const redis = limitsSuite(async () => {
  const url = await freshRedisUrl();
  return () => redisNode(url);
});
describeOn([postgresServer], 'shared limits, PostgreSQL', postgres);
describeOn([redisServer], 'shared limits, Redis', redis);

describeOn([postgresServer, redisServer], 'limits whose store is unavailable', () => {
  beforeEach(() => {
    warnings = [];
  });

  async function expectCountedHere(node: Node): Promise<void> {
    const limit = limitOf(node, 3);
    const counting = Promise.all(Array.from({ length: 5 }, () => limit.count('a')));
    expect(await ticksOf(counting)).to.be.below(2_000);
    const counted = await counting;
    expect(counted.filter((over) => over === undefined)).to.have.length(3);
    await limit.refund('a');
    await limit.forget('a');
    expect(await limit.count('a')).to.equal(undefined);
    expect(warnings).to.deep.equal(['attempts are counted by this process only']);

    const options = { name: 'needed', attempts: 1, windowSeconds: WINDOW };
    const needed = node.limits.createAttemptLimit({ ...options, onStoreUnavailable: 'throw' });
    const failure = await needed.count('a').catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(StorageUnavailable);
  }

  const stores = {
    Redis: async () => {
      const server = await startRedisServer();
      return { server, ...(await redisNode(server.url, 1)) };
    },
    PostgreSQL: async () => {
      const server = await startPostgresServer();
      const databaseUrl = await server.createDatabase();
      return { server, ...(await postgresNode({ databaseUrl, dataDirectory: '' }, 1)) };
    },
  };
  for (const [name, start] of Object.entries(stores)) {
    it(`while ${name} is unavailable, a process counts attempts itself and warns once; limits that need it fail`, async () => {
      const { server, node, close } = await start();
      try {
        server.pause();
        await expectCountedHere(node);
      } finally {
        server.resume();
        await close();
      }
    });
  }
});
