import { expect } from 'chai';
import { Cluster, Redis } from 'ioredis';
import { systemClock } from '../../src/base/clock.ts';
import { connectRedis, createRedis, reply } from '../../src/storage/redis/redis.ts';
import { createRedisStore } from '../../src/storage/redis/store.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { eventually } from '../support/eventually.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, redisServer } from '../support/requirements.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { FACTS, newId } from './token-store-contract.ts';
import { failureOf } from './waiting.ts';

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
const LIFETIMES = { codeSeconds: 600, absoluteSeconds: undefined };
const STEP = { attempt: 'mine', refreshSeconds: 3_600 };
const ROTATION = { ...STEP, from: 0, retryWindowSeconds: 0 };

describe('the first connection to a Redis Cluster may need several attempts', () => {
  it('a connection to a Cluster succeeds even if the Cluster becomes ready only at a later attempt', async () => {
    const client = createRedis('redis+cluster://127.0.0.1:1');
    // So does ioredis if the Cluster is not ready at the first attempt, and then tries again.
    client.connect = () => new Promise<void>(() => {});
    const connecting = connectRedis(client);
    client.emit('ready');
    await connecting;
    client.disconnect();
  });
});

describe('URL of Redis', () => {
  const single = (url: string): Record<string, unknown> => {
    const client = createRedis(url);
    expect(client).to.be.instanceOf(Redis);
    return { ...client.options };
  };

  it('the URL of one Redis server contains host, port, database and credentials', () => {
    const cases: [string, object][] = [
      ['redis://cache', { host: 'cache', port: 6379, db: 0, username: null, password: null }],
      ['redis://cache:7000/3', { host: 'cache', port: 7000, db: 3 }],
      ['redis://[::1]:7000', { host: '::1', port: 7000 }],
      ['redis://:secret@cache', { username: null, password: 'secret' }],
      ['redis://gate:secret@cache', { username: 'gate', password: 'secret' }],
      ['redis://gate:a%2Fb%40c%3Ad@cache', { username: 'gate', password: 'a/b@c:d' }],
      ['redis://gate:se:cr:et@cache', { username: 'gate', password: 'se:cr:et' }],
    ];
    for (const [url, expected] of cases) expect(single(url), url).to.include(expected);
    expect(single('redis://cache')).not.to.have.property('tls');
    expect(single('rediss://cache')).to.deep.include({ host: 'cache', tls: {} });
  });

  it('a Sentinel URL lists Sentinels and names the master; rediss+sentinel uses TLS to Sentinels and master', () => {
    const plain = single('redis+sentinel://gate:secret@one,two:7000,[::1]:7001/warehouse');
    expect(plain).to.deep.include({
      name: 'warehouse',
      username: 'gate',
      password: 'secret',
      sentinels: [
        { host: 'one', port: 26_379 },
        { host: 'two', port: 7000 },
        { host: '::1', port: 7001 },
      ],
    });
    expect(plain).not.to.have.property('sentinelTLS');
    const encrypted = { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true };
    expect(single('rediss+sentinel://one/warehouse')).to.deep.include(encrypted);
  });

  it('the URL of a Redis Cluster contains some nodes, which name the others', () => {
    const client = createRedis('rediss+cluster://gate:secret@one,two:7001/');
    if (!(client instanceof Cluster)) throw new Error('not a cluster');
    expect(client.options.redisOptions).to.deep.include({
      username: 'gate',
      password: 'secret',
      tls: {},
    });
    const plain = createRedis('redis+cluster://one,two:7001') as Cluster;
    expect(plain.options.redisOptions).not.to.have.property('tls');
  });
});

describeOn([redisServer], 'a single Redis server', () => {
  let server: RedisServer;
  let admin: Redis;
  let proxy: TcpProxy;
  let store: TokenStore;

  before(async () => {
    // Let tests change the protected directory setting, and enable snapshots, so that one can fail.
    const disk = { 'enable-protected-configs': 'yes', save: '3600 1000000' };
    server = await startRedisServer(disk);
    admin = new Redis(server.url);
    proxy = await startTcpProxy(Number(new URL(server.url).port));
    const client = createRedis(`redis://127.0.0.1:${proxy.port}`);
    await client.connect();
    store = createRedisStore({ redis: client, clock: systemClock });
  });
  beforeEach(() => eventually(() => store.ping()));
  after(async () => {
    await store.close();
    admin.disconnect();
    await proxy.close();
  });

  const begin = async (): Promise<string> => {
    const id = newId();
    await store.beginAuthorization(id, FACTS, LIFETIMES);
    return id;
  };
  const beginExchanged = async (): Promise<string> => {
    const id = await begin();
    expect(await store.exchangeCode(id, STEP)).to.include({ outcome: 'issued' });
    return id;
  };
  const configure = (name: string, value: string) => admin.config('SET', name, value);

  it('a Redis server that is too old or has renamed a needed command is reported as unavailable', async () => {
    expect(await failureOf(reply(admin.call('GETANDFORGET', 'key')))).to.be.instanceOf(StorageUnavailable);
    expect(await failureOf(reply(admin.call('INCR')))).to.have.property('name', 'ReplyError');
  });

  /** Takes a snapshot. If it fails, Redis refuses writes from then on (MISCONF). */
  async function snapshot(): Promise<void> {
    // Retry, because BGSAVE fails while the append-only file is rewritten.
    await eventually(() => admin.bgsave());
    await eventually(async () => {
      expect(await admin.info('persistence')).to.include('rdb_bgsave_in_progress:0');
    });
  }
  for (const [why, setting, harmful, mayRemove] of [
    ['without memory', 'maxmemory', '1', true],
    ['without replicas that it needs', 'min-replicas-to-write', '1', false],
    // Not even root can create a file in /proc.
    ['without a disk to write to', 'dir', '/proc', false],
  ] as const) {
    it(`a Redis ${why} refuses writes, leaves no operation half done, and recovers`, async () => {
      const [session, code, exchanged] = [newId(), await begin(), await beginExchanged()];
      await store.write('session', session, 'kept', inAnHour());
      const removals = [() => store.remove('session', session), () => store.endAuthorization(exchanged)];
      const [, usual = ''] = (await admin.config('GET', setting)) as string[];
      await configure(setting, harmful);
      if (setting === 'dir') await snapshot();
      for (const work of [
        () => store.write('session', newId(), {}, inAnHour()),
        () => store.writeSession(newId(), newId(), {}, inAnHour()),
        begin,
        () => store.exchangeCode(code, STEP),
        () => store.rotate(exchanged, ROTATION),
        () => store.ping(),
        ...(mayRemove ? [] : removals),
      ]) {
        expect(await failureOf(work())).to.be.instanceOf(StorageUnavailable);
      }
      expect(await store.read('session', session)).to.include({ data: 'kept' });
      const haveRemoved = async () => {
        for (const remove of removals) expect(await remove()).to.equal(true);
      };
      if (mayRemove) await haveRemoved();
      await configure(setting, usual);
      if (setting === 'dir') await snapshot();
      if (!mayRemove) await haveRemoved();
      expect(await store.exchangeCode(code, STEP)).to.include({ outcome: 'issued' });
      expect(await store.rotate(code, ROTATION)).to.include({ outcome: 'issued' });
    });
  }

  for (const { title, given, step } of [
    {
      title: 'an exchange',
      given: begin,
      step: (id: string, attempt = 'mine') => store.exchangeCode(id, { ...STEP, attempt }),
    },
    {
      title: 'a rotation',
      given: beginExchanged,
      step: (id: string, attempt = 'mine') => store.rotate(id, { ...ROTATION, attempt }),
    },
  ]) {
    it(`${title} whose answer from Redis was lost can be repeated, but only by the same attempt`, async () => {
      // Load the script into Redis, so that the next step is a single command.
      await step(await given());
      const [id, other] = [await given(), newId()];
      await store.write('session', other, 'other', inAnHour());
      const broken = proxy.breakAnswerTo('evalsha', (answer) => answer.indexOf('*3\r\n'));
      const [, issue] = await Promise.all([
        // Send two requests: their answers arrive together, and only the first answer is passed on.
        failureOf(store.read('session', other)),
        step(id),
      ]);
      await broken;
      expect(issue).to.include({ outcome: 'issued' });
      expect(await step(id, 'theirs')).to.include({ outcome: 'replayed' });
    });
  }

  it('a silent connection to Redis is replaced by a new one', async () => {
    await store.ping();
    proxy.silence();
    expect(await failureOf(store.ping())).to.be.instanceOf(StorageUnavailable);
    await eventually(() => store.ping());
  });

  it('a master that becomes a replica is replaced by the new master', async () => {
    const promoted = await startRedisServer();
    const port = Number(new URL(promoted.url).port);
    await store.ping();
    await admin.call('REPLICAOF', '127.0.0.1', String(port));
    proxy.leadTo(port);
    expect(await failureOf(store.ping())).to.be.instanceOf(StorageUnavailable);
    await eventually(() => store.ping());
    await admin.call('REPLICAOF', 'NO', 'ONE');
    proxy.leadTo(Number(new URL(server.url).port));
    await promoted.stop();
    await eventually(() => store.ping());
  });

  it('a Redis that refuses the password is unavailable', async () => {
    const user = ['ACL', 'SETUSER', 'gatehouse', 'on', '~gh:*', '+@all', 'resetpass'] as const;
    await admin.call(...user, '>pass:word');
    const client = createRedis(server.url.replace('//', '//gatehouse:pass:word@'));
    await client.connect();
    const theirs = createRedisStore({ redis: client, clock: systemClock });
    await theirs.ping();
    await admin.call(...user, '>another');
    await admin.call('CLIENT', 'KILL', 'USER', 'gatehouse');
    expect(await failureOf(theirs.ping())).to.be.instanceOf(StorageUnavailable);
    await admin.call(...user, '>pass:word');
    await eventually(() => theirs.ping());
    await theirs.close();
  });
});
