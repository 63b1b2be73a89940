import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { openTokenStore, UnsafeRedis } from '../../src/storage/open-token-store.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { redisLimits } from '../../src/storage/shared-limits.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { exchangeCode, refresh } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { redisCommands } from '../support/redis-commands.ts';
import {
  ask,
  askSentinel,
  callOnce,
  clusterUrlOf,
  expectState,
  moveSlot,
  portOf,
  type Sentinel,
  startCluster,
  startSentinel,
  untilMaster,
} from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { timeShift } from '../support/stores.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { FACTS, newId, tokenStoreContract } from './token-store-contract.ts';
import { failureOf, withinLimit } from './waiting.ts';

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
/** Opens a token store as a service does when it starts. The caller must close it. */
async function openStore(
  redisUrl: string,
  { clock = systemClock, timeoutFactor = 1 }: { clock?: Clock; timeoutFactor?: number } = {},
): Promise<TokenStore> {
  // With Redis, the token store never uses the database, so the database need not exist.
  const databaseUrl = 'postgres://postgres@127.0.0.1:1/postgres';
  const database = await openDatabase({ databaseUrl, dataDirectory: '' });
  const options = { redisUrl, database, clock, timeoutFactor };
  return (await openTokenStore({ ...options, timeShift })).store;
}

describeOn([redisServer], 'Redis Cluster of three masters', () => {
  let masters: readonly RedisServer[];
  let url: string;
  const opened: TokenStore[] = [];
  /** @param timeoutFactor 1 in tests of the timeouts themselves */
  const open = async (aheadSeconds = 0, timeoutFactor = TIMEOUT_FACTOR): Promise<TokenStore> => {
    const clock: Clock = () => systemClock() + aheadSeconds * 1_000;
    const store = await openStore(url, { clock, timeoutFactor });
    opened.push(store);
    return store;
  };

  before(async () => {
    masters = await startCluster();
    url = clusterUrlOf(masters);
  });
  after(async () => {
    for (const store of opened) await store.close();
  });

  tokenStoreContract(async () => ({ store: await open(), anotherNode: open }));

  it('a Redis Cluster counts attempts correctly, whichever node has the keys', async () => {
    const redis = createRedis(url, { timeoutFactor: TIMEOUT_FACTOR });
    await redis.connect();
    try {
      const options = { name: 'test', attempts: 2, windowSeconds: 60 };
      const limit = redisLimits(redis, { warn: expect.fail }).createAttemptLimit({
        ...options,
        onStoreUnavailable: 'throw',
      });
      for (const key of Array.from({ length: 20 }, newId)) {
        const counted = await Promise.all(Array.from({ length: 5 }, () => limit.count(key)));
        expect(counted.filter((over) => over === undefined)).to.have.length(2);
        await limit.forget(key);
        await limit.refund(key);
        expect(await limit.count(key)).to.equal(undefined);
      }
    } finally {
      redis.disconnect();
    }
  });

  describeOn([postgresServer], 'a Redis Cluster used by the service', () => {
    const start = startsOn('postgres+redis');
    const on = startSeeded({
      on: (options) => start({ ...options, settings: { storage: { redisUrl: url } } }),
    });

    const commandsOf = async (work: () => Promise<unknown>): Promise<string[]> => {
      const urls = masters.map((master) => master.url);
      return (await redisCommands(urls, work)).map(({ name }) => name);
    };

    it('the service needs no more commands for a Redis Cluster than for a single Redis server', async () => {
      const { issuer, partner, clients } = on;
      const { confidential } = clients;
      const code = await partner.code(confidential);
      // Repeat the work, so that every node has loaded the scripts.
      for (let times = 0; times < 20; times += 1) {
        const { refreshToken } = await partner.tokens(confidential);
        await refresh(issuer, confidential, refreshToken);
      }
      const exchanged: { accessToken: string; refreshToken: string }[] = [];
      const exchange = async (): Promise<void> => {
        exchanged.push(tokensOf(await exchangeCode(issuer, confidential, code)));
      };
      const renew = async (): Promise<void> => {
        const [tokens] = exchanged;
        await refresh(issuer, confidential, tokens?.refreshToken ?? '');
      };
      const ask = (): Promise<boolean> => partner.isActive(exchanged[0]?.accessToken ?? '');
      expect(await commandsOf(exchange), 'exchange').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(renew), 'refresh').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(renew), 'retry').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(ask), 'introspection').to.deep.equal(['get']);
    });
  });

  it('a Redis Cluster is refused if one of its nodes could lose tokens', async () => {
    const [, second] = masters;
    if (!second) throw new Error('no second node');
    await ask(second, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await failureOf(openStore(url))).to.be.instanceOf(UnsafeRedis);
    await ask(second, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  });

  it('a Redis Cluster answers within the time limit while a node hangs, and recovers', async () => {
    const { read, expectAllRead } = await openWithRecords();
    masters[0]?.pause();
    await expectSomeFail(read);
    masters[0]?.resume();
    await expectAllRead();
  });

  it('a Redis Cluster answers within the time limit while a node is down, and recovers with the node', async () => {
    const { read, expectAllRead } = await openWithRecords();
    await masters[0]?.kill();
    await expectSomeFail(read);
    // Wait until the other nodes agree that slots are missing, and serve no requests.
    await eventually(() => expectState(masters.slice(1), 'fail'));
    await expectSomeFail(read);
    await masters[0]?.restart();
    await expectAllRead();
  });

  it('a Redis Cluster is treated as unavailable until each of its masters is available', async () => {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open(0, 1);
    await eventually(() => store.ping());
    const [first, second] = masters;
    await Promise.all([first?.kill(), second?.kill()]);
    expect(await withinLimit(store.ping())).to.be.instanceOf(StorageUnavailable);
    await first?.restart();
    expect(await withinLimit(store.ping())).to.be.instanceOf(StorageUnavailable);
    await second?.restart();
    await eventually(() => store.ping());
  });

  it('in a Redis Cluster no key is lost or revived while its slot moves', async () => {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open();
    const [first, second] = masters;
    if (!first || !second) throw new Error('no cluster');
    const lifetimes = { codeSeconds: 600, absoluteSeconds: undefined };
    const step = { attempt: 'mine', refreshSeconds: 3_600, retryWindowSeconds: 0 };
    const chains = Array.from({ length: 120 }, () => ({
      id: newId(),
      rotation: 0,
      isEnded: false,
    }));
    for (const { id } of chains) {
      await store.beginAuthorization(id, FACTS, lifetimes);
      await store.exchangeCode(id, step);
    }
    let isDone = false;
    const working = chains.map(async (chain, index) => {
      while (!isDone) {
        const { outcome } = await store.rotate(chain.id, { ...step, from: chain.rotation });
        expect(outcome).to.equal('issued');
        chain.rotation += 1;
        if (index % 4 === 0 && chain.rotation === 3) {
          chain.isEnded = await store.endAuthorization(chain.id);
          return;
        }
        await delay(50);
      }
    });
    const slots = await slotsWithKeys(first, 60);
    for (const slot of slots) await moveSlot(slot, first, second);
    isDone = true;
    await Promise.all(working);
    for (const { id, rotation, isEnded } of chains) {
      const found = await store.readAuthorization(id);
      expect(found?.rotation).to.equal(isEnded ? undefined : rotation);
    }
    for (const slot of slots) await moveSlot(slot, second, first);
  });

  /** Returns at most `count` slots of this master that have keys. */
  async function slotsWithKeys(master: RedisServer, count: number): Promise<readonly number[]> {
    const keys = (await ask(master, 'KEYS', '*')) as string[];
    const slots = await Promise.all(keys.slice(0, count).map((key) => ask(master, 'CLUSTER', 'KEYSLOT', key)));
    return [...new Set(slots.map(Number))];
  }

  /** Retries: a store with the time limits of production may fail on a busy machine. */
  async function writeAll(store: TokenStore, ids: readonly string[]): Promise<void> {
    await eventually(() => Promise.all(ids.map((id) => store.write('session', id, id, inAnHour()))));
  }

  /** Opens a store with records on each node. */
  async function openWithRecords() {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open(0, 1);
    // With 20 of them, no record was on the first node in one of 3,000 runs.
    const ids = Array.from({ length: 60 }, newId);
    await writeAll(store, ids);
    return {
      read: () => ids.map((id) => withinLimit(store.read('session', id))),
      expectAllRead: () =>
        eventually(async () => {
          for (const id of ids) expect(await store.read('session', id)).to.include({ data: id });
        }),
    };
  }
});

/** Expects that some reads are answered, and all others fail with StorageUnavailable. */
async function expectSomeFail(read: () => Promise<unknown>[]): Promise<void> {
  const errors = await Promise.all(read());
  const failed = errors.filter((error) => error instanceof StorageUnavailable);
  expect(failed).not.to.deep.equal([]);
  expect(errors.filter((error) => error !== undefined)).to.deep.equal(failed);
}

describeOn([redisServer], 'Redis behind a Sentinel', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let sentinel: Sentinel;

  beforeEach(async () => {
    master = await startRedisServer({ 'repl-diskless-sync-delay': '0' });
    replica = await startRedisServer({ replicaof: `127.0.0.1 ${portOf(master)}` });
    // Without this, the Sentinel would look for replicas again only after 10 seconds.
    await ask(master, 'SET', 'first', 'written');
    await eventually(async () => expect(await ask(replica, 'EXISTS', 'first')).to.equal(1));
    sentinel = await startSentinel(master);
  });
  afterEach(async () => {
    await replica.stop();
    await master.stop();
  });

  it('if a Redis master hangs, a store behind a Sentinel continues with the new master', async () => {
    const store = await openStore(`redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinel.port}/warehouse`);
    const id = newId();
    await store.write('session', id, 'kept', inAnHour());
    await eventually(async () => expect(await ask(replica, 'DBSIZE')).to.be.above(1));
    master.pause();
    expect(await withinLimit(store.ping())).to.be.instanceOf(StorageUnavailable);
    await eventually(() => store.ping());
    expect(await store.read('session', id)).to.include({ data: 'kept' });
    await untilMaster(sentinel, replica);
    master.resume();
    await store.close();
  });

  it('a token store recovers if a failover is announced while it looks for the master', async () => {
    const hanging = await startSentinel(master);
    const url = `redis+sentinel://127.0.0.1:${hanging.port},127.0.0.1:${sentinel.port}/warehouse`;
    const store = await openStore(url);
    await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
    // The replica has been chosen now, and is announced as soon as it is a master.
    await eventually(async () => {
      const chosen = await askSentinel(sentinel, 'get-master-addr-by-name', 'warehouse');
      expect(chosen).to.deep.equal(['127.0.0.1', portOf(replica)]);
    });
    hanging.pause();
    await ask(master, 'CLIENT', 'KILL', 'TYPE', 'normal');
    await untilMaster(sentinel, replica);
    hanging.resume();
    await eventually(() => store.write('session', newId(), 'kept', inAnHour()));
    await store.close();
  });

  it('a store is unavailable at the start if no Sentinel answers or knows the master', async () => {
    const attempts = [
      `redis+sentinel://127.0.0.1:${await freePort()}/warehouse`,
      `redis+sentinel://127.0.0.1:${sentinel.port}/unknown`,
    ];
    const errors = await Promise.all(attempts.map((url) => failureOf(openStore(url))));
    for (const error of errors) expect(error).to.be.instanceOf(StorageUnavailable);
  });

  it('a store that is closed while it looks for the master leaves no connection to a Sentinel open', async () => {
    const clientsOfSentinel = async (): Promise<number> =>
      String(await callOnce(sentinel.port, 'CLIENT', 'LIST', 'TYPE', 'PUBSUB')).split('\n').length - 1;
    const client = createRedis(`redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`) as Redis;
    await client.connect();
    await eventually(async () => expect(await clientsOfSentinel()).to.equal(1));
    replica.pause();
    await master.kill();
    await eventually(() => expect(client.status).to.equal('reconnecting'));
    client.disconnect();
    await eventually(async () => expect(await clientsOfSentinel()).to.equal(0));
    replica.resume();
  });

  it('after a failover of Redis, nodes switch from the old master to the new one at once', async () => {
    // Keep the old master from being demoted, as in the first 10 seconds of a failover: clients must leave it.
    await ask(master, 'ACL', 'SETUSER', 'default', '-replicaof', '-slaveof');
    const load = await startLoad(`redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`);
    await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
    await load.until(() => load.ports().every((port) => port === portOf(replica)));
    await load.stop();
  });
});

/** Two nodes that write keys. */
async function startLoad(url: string) {
  const nodes = [createRedis(url) as Redis, createRedis(url) as Redis];
  await Promise.all(nodes.map((node) => node.connect()));
  let isDone = false;

  async function work(node: (typeof nodes)[number], name: number): Promise<void> {
    for (let count = 0; !isDone; count += 1) {
      await node.set(`${name}-${count}`, 'kept').catch(() => delay(20));
      await delay(1);
    }
  }

  const done = Promise.all(nodes.map(work));
  return {
    /** Returns the port to which each node is connected. */
    ports: () => nodes.map((node) => String((node.stream as Socket | undefined)?.remotePort)),
    until: (isEnough: () => boolean) => eventually(async () => expect(isEnough()).to.equal(true)),
    async stop() {
      isDone = true;
      await done;
      for (const node of nodes) node.disconnect();
    },
  };
}
