import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../src/clock.ts';
import { UnsafeRedis } from '../../src/storage/open-token-store.ts';
import { createRedis } from '../../src/storage/redis.ts';
import { redisLimits } from '../../src/storage/shared-limits.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, startProgram } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, redisServer, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { openStore } from './open-store.ts';
import { FACTS, newId, tokenStoreContract } from './token-store-contract.ts';
import { failureOf, withinLimit } from './waiting.ts';

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
const portOf = (server: RedisServer): string => new URL(server.url).port;

const ask = (server: RedisServer, command: string, ...values: string[]): Promise<unknown> =>
  callOnce(Number(portOf(server)), command, ...values);

async function callOnce(port: number, command: string, ...values: string[]): Promise<unknown> {
  const redis = new Redis({ port, lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await redis.call(command, ...values);
  } finally {
    redis.disconnect();
  }
}

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
    url = `redis+cluster://${masters.map((master) => `127.0.0.1:${portOf(master)}`).join(',')}`;
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
      const limit = redisLimits(redis).createAttemptLimit({ ...options, whenAway: 'throw' });
      for (const key of Array.from({ length: 20 }, newId)) {
        const counted = await Promise.all(Array.from({ length: 5 }, () => limit.count(key)));
        expect(counted.filter((over) => over === undefined)).to.have.length(2);
        await limit.forget(key);
        await limit.giveBack(key);
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

  it('is asked for each step of an authorization by one command, at the node that has the key', async () => {
    const store = await open();
    const step = { attempt: 'mine', refreshSeconds: 3_600 };
    const steps = async (): Promise<void> => {
      const id = newId();
      await store.beginAuthorization(id, FACTS, { codeSeconds: 600, absoluteSeconds: undefined });
      await store.readAuthorization(id);
      await store.exchangeCode(id, step);
      await store.rotate(id, { ...step, from: 0, retryWindowSeconds: 60 });
      await store.confirmRotation(id, 1);
      await store.endAuthorization(id);
    };
    // Each node is told the scripts once.
    for (let times = 0; times < 50; times += 1) await steps();
    const commands: string[] = [];
    const clients = masters.map((master) => new Redis(master.url));
    const monitors = await Promise.all(clients.map((client) => client.monitor()));
    for (const monitor of monitors) {
      monitor.on('monitor', (_time: string, [name = '', key = '']: string[], source: string) => {
        if (source !== 'lua' && !/^(echo|cluster|info|ping)$/i.test(name)) commands.push(name, key);
      });
    }
    await steps();
    await Promise.all(clients.map((client) => client.echo('the end')));
    await eventually(() => expect(commands).to.include('getdel'));
    for (const connection of [...clients, ...monitors]) connection.disconnect();
    const names = commands.filter((_, index) => index % 2 === 0);
    const script = 'evalsha';
    expect(names).to.deep.equal([script, 'get', script, script, script, 'getdel']);
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

/** Some are answered and some are not, and none in another way. */
async function expectSomeAway(read: () => Promise<unknown>[]): Promise<void> {
  const errors = await Promise.all(read());
  const away = errors.filter((error) => error instanceof StorageUnavailable);
  expect(away).not.to.deep.equal([]);
  expect(errors.filter((error) => error !== undefined)).to.deep.equal(away);
}

async function expectState(masters: readonly RedisServer[], state: 'ok' | 'fail'): Promise<void> {
  for (const master of masters) {
    expect(await ask(master, 'CLUSTER', 'INFO')).to.contain(`cluster_state:${state}`);
  }
}

describeOn([redisServer], 'Redis behind a Sentinel', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let sentinelPort: number;
  let store: TokenStore | undefined;

  before(async () => {
    master = await startRedisServer();
    replica = await startRedisServer({ replicaof: `127.0.0.1 ${portOf(master)}` });
    sentinelPort = await startSentinel(master);
  });
  after(async () => {
    await store?.close();
    await replica.stop();
    await master.stop();
  });

  it('keeps working with the new master when the old one hangs', async () => {
    store = await openStore(`redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinelPort}/warehouse`);
    const node = store;
    const id = newId();
    await node.write('session', id, 'kept', inAnHour());
    await eventually(async () => expect(await ask(replica, 'DBSIZE')).to.be.above(0));
    await eventually(async () => {
      const found = await askSentinel(sentinelPort, 'replicas', 'warehouse');
      expect(found).to.have.length(1);
    });
    master.pause();
    expect(await withinLimit(node.ping())).to.be.instanceOf(StorageUnavailable);
    await eventually(() => node.ping());
    expect(await node.read('session', id)).to.include({ data: 'kept' });
    const [, port] = (await askSentinel(sentinelPort, 'get-master-addr-by-name', 'warehouse')) as [
      string,
      string,
    ];
    expect(port).to.equal(portOf(replica));
    master.resume();
  });

  it('is away when no Sentinel answers or knows the master, and the start says so', async () => {
    const attempts = [
      `redis+sentinel://127.0.0.1:${await freePort()}/warehouse`,
      `redis+sentinel://127.0.0.1:${sentinelPort}/unknown`,
    ];
    const errors = await Promise.all(attempts.map((url) => failureOf(openStore(url))));
    for (const error of errors) expect(error).to.be.instanceOf(StorageUnavailable);
  });
});

describeOn([redisServer], 'a planned failover by Sentinel under load', () => {
  /** As the README asks for: a master that nobody follows any more takes no writes. */
  const guarded = { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '10' };

  for (const [what, settings] of [
    ['nothing acknowledged is lost or revived, where a master needs a replica', guarded],
    ['and no node goes on with the former master, where it needs none', {}],
  ] as const) {
    it(what, async () => {
      const former = await startRedisServer();
      const replicaof = `127.0.0.1 ${portOf(former)}`;
      const successor = await startRedisServer({ ...settings, replicaof });
      const sentinelPort = await startSentinel(former);
      for (const [name, value] of Object.entries(settings)) {
        await ask(former, 'CONFIG', 'SET', name, value);
      }
      await eventually(async () => {
        expect(await askSentinel(sentinelPort, 'replicas', 'warehouse')).to.have.length(1);
        expect(await ask(former, 'INFO', 'replication')).to.match(/slave0:.*state=online/);
      });

      const url = `redis+sentinel://127.0.0.1:${sentinelPort}/warehouse`;
      const load = await startLoad(url);
      await load.until(() => load.written.size > 50);
      await callOnce(sentinelPort, 'SENTINEL', 'FAILOVER', 'warehouse');
      await eventually(async () => {
        const found = await askSentinel(sentinelPort, 'get-master-addr-by-name', 'warehouse');
        expect(found).to.deep.equal(['127.0.0.1', portOf(successor)]);
      });
      if (settings !== guarded) {
        // Told a moment later, and what was under way then may still be lost.
        await delay(500);
        load.written.clear();
        load.removed.clear();
      }
      const known = load.written.size;
      await load.until(() => load.written.size > known + 50);
      await load.stop();

      const kept = new Set((await ask(successor, 'KEYS', '*')) as string[]);
      expect(
        [...load.written].filter((key) => !kept.has(key)),
        'lost',
      ).to.deep.equal([]);
      expect(
        [...load.removed].filter((key) => kept.has(key)),
        'revived',
      ).to.deep.equal([]);
      await successor.stop();
      await former.stop();
    });
  }
});

/** Two nodes that write, and remove every other thing again. What was acknowledged is noted. */
async function startLoad(url: string) {
  const nodes = [createRedis(url), createRedis(url)];
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
    ...{ written, removed },
    until: (isEnough: () => boolean) => eventually(async () => expect(isEnough()).to.equal(true)),
    async stop() {
      isOver = true;
      await done;
      for (const node of nodes) node.disconnect();
    },
  };
}

/** The first and the last slot of each node. */
const SLOTS = [
  ['0', '5460'],
  ['5461', '10922'],
  ['10923', '16383'],
] as const;

/** Three masters without replicas, each with a third of the slots. */
async function startCluster(): Promise<readonly RedisServer[]> {
  const nodes = await Promise.all(
    [0, 1, 2].map(async () => {
      const busPort = await freePort();
      const server = await startRedisServer({
        'cluster-enabled': 'yes',
        // By default 10000 above the port, which may be no port any more.
        'cluster-port': String(busPort),
        'cluster-node-timeout': '2000',
        // Or what was written in the last second may be lost with the process.
        appendfsync: 'always',
      });
      return { server, busPort };
    }),
  );
  const [first] = nodes;
  if (!first) throw new Error('no node');
  for (const [index, { server }] of nodes.entries()) {
    await ask(server, 'CLUSTER', 'ADDSLOTSRANGE', ...(SLOTS[index] ?? []));
    await ask(server, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    if (server === first.server) continue;
    const meet = ['127.0.0.1', portOf(first.server), String(first.busPort)];
    await ask(server, 'CLUSTER', 'MEET', ...meet);
  }
  const servers = nodes.map(({ server }) => server);
  await eventually(() => expectState(servers, 'ok'));
  return servers;
}

/** A Sentinel that watches the master as `warehouse`. @returns its port. */
async function startSentinel(master: RedisServer): Promise<number> {
  const cwd = temporaryDirectory('sentinel');
  const port = await freePort();
  const file = path.join(cwd, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${cwd}`,
    `sentinel monitor warehouse 127.0.0.1 ${portOf(master)} 1`,
    'sentinel down-after-milliseconds warehouse 500',
    'sentinel failover-timeout warehouse 3000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sentinel = startProgram(required(redisServer), [file, '--sentinel'], { cwd });
  atEndOfFile(() => sentinel.end('SIGTERM'));
  await sentinel.waitUntil(() => askSentinel(port, 'myid'));
  return port;
}

const askSentinel = (port: number, question: string, ...values: string[]): Promise<unknown> =>
  callOnce(port, 'SENTINEL', question, ...values);
