import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { UnsafeRedis } from '../../src/storage/open-token-store.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { redisLimits } from '../../src/storage/shared-limits.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { exchangeCode, refresh } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import {
  ask,
  askSentinel,
  callOnce,
  clusterUrlOf,
  expectState,
  moveSlot,
  portOf,
  type Sentinel,
  SLOTS,
  startCluster,
  startSentinel,
  untilMaster,
} from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { openStore } from './open-store.ts';
import { FACTS, newId, tokenStoreContract } from './token-store-contract.ts';
import { failureOf, withinLimit } from './waiting.ts';

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
describeOn([redisServer], 'Redis Cluster of three masters', () => {
  let masters: readonly RedisServer[];
  let url: string;
  const opened: TokenStore[] = [];
  const open = async (aheadSeconds = 0): Promise<TokenStore> => {
    const clock: Clock = () => systemClock() + aheadSeconds * 1_000;
    const store = await openStore(url, { clock });
    opened.push(store);
    return store;
  };

  before(async () => {
    masters = await startCluster();
    url = clusterUrlOf(masters);
  });
  after(async () => {
    for (const store of opened) await store.close();
    for (const master of masters) await master.stop();
  });

  tokenStoreContract(async () => ({ store: await open(), anotherNode: open }));

  it('counts attempts, whichever node has the keys', async () => {
    const redis = createRedis(url);
    await redis.connect();
    try {
      const options = { name: 'test', attempts: 2, windowSeconds: 60, log: { warn: expect.fail } };
      const limit = redisLimits(redis).createAttemptLimit({
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

  it('answers many requests at once, whichever node has the keys', async () => {
    const store = await open();
    const ids = Array.from({ length: 200 }, newId);
    const lifetimes = { codeSeconds: 600, absoluteSeconds: undefined };
    const step = { attempt: 'mine', refreshSeconds: 3_600 };
    await Promise.all(
      ids.map((id) => store.beginAuthorization(id, { ...FACTS, accountId: id }, lifetimes)),
    );
    await Promise.all(
      ids.map(async (id) => {
        const rotation = { ...step, from: 0, retryWindowSeconds: 60 };
        expect(await store.exchangeCode(id, step)).to.include({ outcome: 'issued' });
        expect(await store.rotate(id, rotation)).to.include({ outcome: 'issued' });
        await store.writeSession(id, `${id}_uid`, {}, inAnHour());
        expect(await store.readAuthorization(id)).to.include({ accountId: id, rotation: 1 });
      }),
    );
    for (const master of masters) {
      expect(await ask(master, 'DBSIZE'), 'keys of one node').to.be.above(100);
    }
  });

  describeOn([postgresServer], 'asked by the service', () => {
    const start = startsOn('postgres+redis');
    const on = startSeeded({
      on: (options) => start({ ...options, settings: { storage: { redisUrl: url } } }),
    });

    it('takes no more commands than one server does', async () => {
      const { issuer, partner, clients } = on;
      const { confidential } = clients;
      const code = await partner.code(confidential);
      // Each node is told the scripts once.
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
      expect(await commandsOf(masters, exchange), 'exchange').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(masters, renew), 'refresh').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(masters, renew), 'retry').to.deep.equal(['get', 'evalsha']);
      expect(await commandsOf(masters, ask), 'introspection').to.deep.equal(['get']);
    });
  });

  it('is refused when one node of it could lose tokens', async () => {
    const [, second] = masters;
    if (!second) throw new Error('no second node');
    await ask(second, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await failureOf(openStore(url))).to.be.instanceOf(UnsafeRedis);
    await ask(second, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  });

  it('with a node that hangs answers within the limit, and recovers by itself', async () => {
    const { read, expectAllRead } = await openWithRecords();
    masters[0]?.pause();
    await expectSomeAway(read);
    masters[0]?.resume();
    await expectAllRead();
  });

  it('with a node that is gone answers within the limit, and recovers with it', async () => {
    const { read, expectAllRead } = await openWithRecords();
    await masters[0]?.kill();
    await expectSomeAway(read);
    // The others agree after a while that slots are missing, and serve nobody.
    await eventually(() => expectState(masters.slice(1), 'fail'));
    await expectSomeAway(read);
    await masters[0]?.restart();
    await expectAllRead();
  });

  it('is away while half of it is, and is asked about each master', async () => {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open();
    await store.ping();
    const [first, second] = masters;
    await Promise.all([first?.kill(), second?.kill()]);
    expect(await withinLimit(store.ping())).to.be.instanceOf(StorageUnavailable);
    await first?.restart();
    expect(await withinLimit(store.ping())).to.be.instanceOf(StorageUnavailable);
    await second?.restart();
    await eventually(() => store.ping());
  });

  it('whose slots move with their keys loses and revives nothing meanwhile', async () => {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open();
    const [first, second] = masters;
    if (!first || !second) throw new Error('no cluster');
    const lifetimes = { codeSeconds: 600, absoluteSeconds: undefined };
    const step = { attempt: 'mine', refreshSeconds: 3_600, retryWindowSeconds: 0 };
    const chains = Array.from({ length: 400 }, () => ({
      id: newId(),
      rotation: 0,
      isEnded: false,
    }));
    for (const { id } of chains) {
      await store.beginAuthorization(id, FACTS, lifetimes);
      await store.exchangeCode(id, step);
    }
    let isOver = false;
    const working = chains.map(async (chain, index) => {
      while (!isOver) {
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
    for (let slot = 0; slot < 300; slot += 1) await moveSlot(slot, first, second);
    isOver = true;
    await Promise.all(working);
    for (const { id, rotation, isEnded } of chains) {
      const found = await store.readAuthorization(id);
      expect(found?.rotation).to.equal(isEnded ? undefined : rotation);
    }
    for (let slot = 0; slot < 300; slot += 1) await moveSlot(slot, second, first);
  });

  it('whose slots move to another node is followed there', async () => {
    const { expectAllRead } = await openWithRecords();
    const [, second, third] = masters;
    const store = opened.at(-1);
    if (!second || !third || !store) throw new Error('no cluster');
    await expectAllRead();
    const ids = Array.from({ length: 60 }, newId);
    await ask(third, 'FLUSHALL');
    for (const master of masters) await ask(master, 'CLUSTER', 'DELSLOTSRANGE', ...SLOTS[2]);
    await ask(second, 'CLUSTER', 'ADDSLOTSRANGE', ...SLOTS[2]);
    await ask(second, 'CLUSTER', 'BUMPEPOCH');
    await eventually(() => expectState(masters, 'ok'));
    await Promise.all(ids.map((id) => store.write('session', id, id, inAnHour())));
    const read = await Promise.all(ids.map((id) => store.read('session', id)));
    expect(read.map((record) => record?.data)).to.deep.equal(ids);
  });

  /** A store with records on each node. */
  async function openWithRecords() {
    await eventually(() => expectState(masters, 'ok'));
    const store = await open();
    const ids = Array.from({ length: 20 }, newId);
    await Promise.all(ids.map((id) => store.write('session', id, id, inAnHour())));
    return {
      read: () => ids.map((id) => withinLimit(store.read('session', id))),
      expectAllRead: () =>
        eventually(async () => {
          for (const id of ids) expect(await store.read('session', id)).to.include({ data: id });
        }),
    };
  }
});

/** The commands that arrive at any of the nodes while `work` runs, those inside a script apart. */
async function commandsOf(
  nodes: readonly RedisServer[],
  work: () => Promise<unknown>,
): Promise<string[]> {
  const commands: string[] = [];
  const clients = nodes.map((node) => new Redis(node.url));
  const monitors = await Promise.all(clients.map((client) => client.monitor()));
  const ended = monitors.map(
    (monitor) =>
      new Promise<void>((resolve) => {
        monitor.on('monitor', (_time: string, [name = '', text]: string[], source: string) => {
          if (text === 'the end') resolve();
          else if (source !== 'lua' && !/^(cluster|info|ping)$/i.test(name)) commands.push(name);
        });
      }),
  );
  await work();
  for (const client of clients) await client.echo('the end');
  await Promise.all(ended);
  for (const connection of [...clients, ...monitors]) connection.disconnect();
  return commands.map((name) => name.toLowerCase());
}

/** Some are answered and some are not, and none in another way. */
async function expectSomeAway(read: () => Promise<unknown>[]): Promise<void> {
  const errors = await Promise.all(read());
  const away = errors.filter((error) => error instanceof StorageUnavailable);
  expect(away).not.to.deep.equal([]);
  expect(errors.filter((error) => error !== undefined)).to.deep.equal(away);
}

describeOn([redisServer], 'Redis behind a Sentinel', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let sentinel: Sentinel;

  beforeEach(async () => {
    master = await startRedisServer({ 'repl-diskless-sync-delay': '0' });
    replica = await startRedisServer({ replicaof: `127.0.0.1 ${portOf(master)}` });
    // First, or the Sentinel looks for replicas again after 10 seconds only.
    await ask(master, 'SET', 'first', 'written');
    await eventually(async () => expect(await ask(replica, 'EXISTS', 'first')).to.equal(1));
    sentinel = await startSentinel(master);
  });
  afterEach(async () => {
    await replica.stop();
    await master.stop();
  });

  it('keeps working with the new master when the old one hangs', async () => {
    const store = await openStore(
      `redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinel.port}/warehouse`,
    );
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

  it('comes back when the switch is announced while it looks for the master', async () => {
    const hanging = await startSentinel(master);
    const url = `redis+sentinel://127.0.0.1:${hanging.port},127.0.0.1:${sentinel.port}/warehouse`;
    const store = await openStore(url);
    await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
    // Chosen, and announced when the replica has been seen to be a master.
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

  it('is away when no Sentinel answers or knows the master, and the start says so', async () => {
    const attempts = [
      `redis+sentinel://127.0.0.1:${await freePort()}/warehouse`,
      `redis+sentinel://127.0.0.1:${sentinel.port}/unknown`,
    ];
    const errors = await Promise.all(attempts.map((url) => failureOf(openStore(url))));
    for (const error of errors) expect(error).to.be.instanceOf(StorageUnavailable);
  });

  it('keeps no connection to a Sentinel after it is closed while it looks for the master', async () => {
    const clientsOfSentinel = async (): Promise<number> =>
      String(await callOnce(sentinel.port, 'CLIENT', 'LIST', 'TYPE', 'PUBSUB')).split('\n').length -
      1;
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

  it('is left at once for the one that took its place', async () => {
    // It cannot be demoted, as for the first 10 seconds of a failover: who stays, stays for ever.
    await ask(master, 'ACL', 'SETUSER', 'default', '-replicaof', '-slaveof');
    const load = await startLoad(`redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`);
    await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
    await load.until(() => load.ports().every((port) => port === portOf(replica)));
    await load.stop();
  });

  it('loses and revives nothing in a planned failover, where writes are paused for it', async () => {
    const load = await startLoad(`redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`);
    await load.until(() => load.written.size > 50);
    await ask(master, 'CLIENT', 'PAUSE', '60000', 'WRITE');
    await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
    await untilMaster(sentinel, replica);
    const known = load.written.size;
    await load.until(() => load.written.size > known + 50);
    await load.stop();
    const kept = new Set((await ask(replica, 'KEYS', '*')) as string[]);
    const lost = [...load.written].filter((key) => !kept.has(key));
    const revived = [...load.removed].filter((key) => kept.has(key));
    expect({ lost, revived }).to.deep.equal({ lost: [], revived: [] });
  });
});

/** Two nodes that write, and remove every other thing again. What was acknowledged is noted. */
async function startLoad(url: string) {
  const nodes = [createRedis(url) as Redis, createRedis(url) as Redis];
  await Promise.all(nodes.map((node) => node.connect()));
  const written = new Set<string>();
  const removed = new Set<string>();
  let isOver = false;

  async function work(node: (typeof nodes)[number], name: number): Promise<void> {
    for (let count = 0; !isOver; count += 1) {
      const key = `${name}-${count}`;
      try {
        await node.set(key, 'kept');
        if (count % 2 === 0) written.add(key);
        // One that did not find it was sent twice, or to another than the one that has it.
        else if ((await node.del(key)) === 1) removed.add(key);
      } catch {
        await delay(20);
      }
      await delay(1);
    }
  }

  const done = Promise.all(nodes.map(work));
  return {
    written,
    removed,
    /** Where each node is connected to. */
    ports: () => nodes.map((node) => String((node.stream as Socket | undefined)?.remotePort)),
    until: (isEnough: () => boolean) => eventually(async () => expect(isEnough()).to.equal(true)),
    async stop() {
      isOver = true;
      await done;
      for (const node of nodes) node.disconnect();
    },
  };
}
