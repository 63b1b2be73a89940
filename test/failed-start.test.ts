/** A start that fails: the reason is told, with what to do about it, and nothing of it stays open. */
import { createServer } from 'node:http';
import { Server } from 'node:net';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { startWithRetry } from '../src/service/start-with-retry.ts';
import { explained, troubleOf } from '../src/service/startup-errors.ts';
import { StorageUnavailable } from '../src/storage/storage-unavailable.ts';
import { failureOf } from './storage/waiting.ts';
import { freshDataDirectory } from './support/embedded-postgres.ts';
import { eventually } from './support/eventually.ts';
import { createOpened } from './support/opened.ts';
import { createPerson } from './support/person.ts';
import {
  freshDatabaseUrl,
  freshMigratedDatabaseUrl,
  startPostgresServer,
} from './support/postgres-server.ts';
import { freePort } from './support/programs.ts';
import { type RedisServer, startRedisServer } from './support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { type Overrides, startsOn, type TestService } from './support/service.ts';

/** What an operator is told of the start that fails. */
const wordsOf = async (starting: Promise<TestService>): Promise<string> =>
  wordsOfError(await failureOf(starting));

function wordsOfError(error: unknown): string {
  expect(error).to.be.an('error');
  const words = explained(error);
  expect(words, 'a stack helps no operator').not.to.match(/^ +at /m);
  return words;
}

async function expectFree(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}

/** A port that somebody listens on while the suite runs that calls this. */
function takenPort(): () => number {
  const opened = createOpened();
  let taken: number;
  before('take a port', async () => {
    taken = await freePort();
    const server = createServer();
    const listening = new Promise<void>((resolve) => server.listen(taken, '127.0.0.1', resolve));
    await opened.add(listening, async () => void server.close());
  });
  after('leave it', opened.closeAll);
  return () => taken;
}

describe('a store that answers with a refusal', () => {
  const asPostgres = (code: string, message: string) =>
    new StorageUnavailable('postgresql', Object.assign(new Error(message), { code }));
  const asRedis = (message: string) => new StorageUnavailable('redis', new Error(message));

  it('gets the remedy of its own words, not that its URL is wrong, and is tried again', () => {
    const full = 'could not extend file "base/16384/2619": No space left on device';
    const cases: readonly (readonly [StorageUnavailable, string])[] = [
      [asPostgres('53100', full), 'make room on the disk of the database'],
      [asPostgres('53300', 'sorry, too many clients already'), 'storage.database_connections'],
      [
        asRedis('MISCONF Errors writing to the AOF file: No space left on device'),
        'make room on the disk of Redis',
      ],
      [
        asRedis('MISCONF Redis is configured to save RDB snapshots, but it is unable to persist'),
        'its own log says what it could not write',
      ],
      [asRedis("OOM command not allowed when used memory > 'maxmemory'."), 'raise maxmemory'],
    ];
    for (const [error, remedy] of cases) {
      const trouble = troubleOf(error);
      expect(trouble?.remedy, error.reason).to.include(remedy).and.not.include('URL is right');
      expect(trouble, error.reason).to.include({ mayPass: true });
    }
  });
});

describe('a start that fails, embedded', () => {
  const start = startsOn();
  const taken = takenPort();

  it('because a port is taken leaves the data directory to the next one', async () => {
    const dataDirectory = await freshDataDirectory();
    const port = await freePort();
    const on = (server: Overrides['server']) =>
      start({ settings: { server: { port, ...server }, storage: { dataDirectory } } });
    expect(await wordsOf(on({ operatorsPort: taken() })))
      .to.include('EADDRINUSE')
      .and.include(`127.0.0.1:${taken()}`);
    await expectFree(port);
    const { issuer } = await on({});
    expect((await createPerson(issuer).get('/login')).status).to.equal(200);
  });

  it('because the system shares no port between processes says so', async () => {
    const { listen } = Server.prototype;
    Server.prototype.listen = function refuse(this: Server, ...given: unknown[]) {
      const [options] = given as [{ reusePort?: boolean }];
      if (!options.reusePort) return Reflect.apply(listen, this, given);
      const error = Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' });
      process.nextTick(() => this.emit('error', error));
      return this;
    };
    const starting = wordsOf(start({ settings: { server: { reusePort: true } } }));
    const words = await starting.finally(() => Object.assign(Server.prototype, { listen }));
    expect(words).to.include('remove `server.reuse_port`');
  });
});

describeOn([postgresServer, redisServer], 'a start that fails, PostgreSQL and Redis', () => {
  const start = startsOn();
  const taken = takenPort();
  let redis: RedisServer;
  let evicting: RedisServer;
  let guarded: RedisServer;

  before(async () => {
    redis = await startRedisServer();
    guarded = await startRedisServer();
    const administrator = new Redis(guarded.url);
    await administrator.config('SET', 'requirepass', 'right');
    administrator.disconnect();
    evicting = await startRedisServer({ 'maxmemory-policy': 'allkeys-lru', appendonly: 'no' });
  });

  /** How many connections there are to the database of that name, and of others to both Redis. */
  async function connections(server: string, databaseUrl = server) {
    const client = new pg.Client({ connectionString: new URL('/postgres', server).href });
    await client.connect();
    const count = 'SELECT FROM pg_stat_activity WHERE datname = $1';
    const name = new URL(databaseUrl).pathname.slice(1);
    const { rowCount } = await client.query(count, [name]).finally(() => client.end());
    let toRedis = 0;
    for (const { url } of [redis, evicting]) {
      const observer = new Redis(url);
      const list = String(await observer.client('LIST', 'TYPE', 'NORMAL'));
      observer.disconnect();
      toRedis += list.trim().split('\n').length - 1;
    }
    return { postgresql: rowCount ?? 0, redis: toRedis };
  }

  it('the connections of one that succeeds are seen', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    const service = await start({ settings: { storage: { databaseUrl, redisUrl: redis.url } } });
    const seen = await connections(databaseUrl);
    expect(seen.postgresql).to.be.above(0);
    expect(seen.redis).to.be.above(0);
    await service.close();
  });

  const nobody = async () => `127.0.0.1:${await freePort()}`;
  const away = 'see that it runs and that its URL is right';
  const changed = async (member: 'username' | 'pathname', value: string) => {
    const url = new URL(await freshMigratedDatabaseUrl());
    url[member] = value;
    return url.href;
  };
  const reasons: [
    because: string,
    settings: () => Promise<Overrides> | Overrides,
    words: readonly string[],
    not?: string,
  ][] = [
    ['the port is taken', () => ({ server: { port: taken() } }), ['EADDRINUSE']],
    [
      'the operators’ port is taken',
      () => ({ server: { operatorsPort: taken() } }),
      ['EADDRINUSE'],
    ],
    [
      'a migration is pending that nobody may apply',
      async () => ({ storage: { databaseUrl: await freshDatabaseUrl(), autoMigrate: false } }),
      ['the database schema is behind by 0001', '`gatehouse migrate` applies them'],
    ],
    [
      'Redis evicts, and keeps nothing on disk',
      () => ({ storage: { redisUrl: evicting.url } }),
      [
        'evicts keys',
        'set `maxmemory-policy noeviction`',
        'keeps no append-only file',
        'set `appendonly yes`',
        'storage.accept_volatile_redis: true',
      ],
    ],
    [
      'Redis evicts, though the operator accepts that it keeps nothing',
      () => ({ storage: { redisUrl: evicting.url, acceptVolatileRedis: true } }),
      ['evicts keys'],
      'append-only',
    ],
    [
      'nobody is where Redis should be',
      async () => ({ storage: { redisUrl: `redis://:swordfish@${await nobody()}` } }),
      ['redis', away],
      'swordfish',
    ],
    [
      'nobody is where PostgreSQL should be',
      async () => ({ storage: { databaseUrl: `postgres://me:swordfish@${await nobody()}/it` } }),
      [away],
      'swordfish',
    ],
    [
      'PostgreSQL knows no such account',
      async () => ({ storage: { databaseUrl: await changed('username', 'nobody') } }),
      ['correct the account and the password in DATABASE_URL'],
    ],
    [
      'PostgreSQL has no such database',
      async () => ({ storage: { databaseUrl: await changed('pathname', '/nowhere') } }),
      ['correct its name at the end of DATABASE_URL'],
    ],
    [
      'Redis takes no such password',
      () => ({ storage: { redisUrl: guarded.url.replace('//', '//:swordfish@') } }),
      ['correct the account and the password in REDIS_URL'],
      'swordfish',
    ],
    [
      'Redis has no such database',
      () => ({ storage: { redisUrl: `${redis.url}/999` } }),
      ['correct the number of the database at the end of REDIS_URL'],
    ],
    [
      'the name of a host does not resolve',
      () => ({ storage: { databaseUrl: 'postgres://me@nowhere.invalid/it' } }),
      ['correct the host in DATABASE_URL'],
    ],
  ];
  for (const [because, settingsOf, words, not] of reasons) {
    it(`because ${because} says so, and leaves no connection and no port`, async () => {
      const free = await freePort();
      const { server, storage } = await settingsOf();
      const databaseUrl = await freshMigratedDatabaseUrl();
      const settings = {
        server: { port: free, ...server },
        storage: { databaseUrl, redisUrl: redis.url, ...storage },
      };
      const error = await failureOf(start({ settings }));
      const said = wordsOfError(error);
      // Only a store that is away is waited for, and a name that is not there yet.
      const mayPass = words.includes(away) || because === 'the name of a host does not resolve';
      expect(troubleOf(error)?.mayPass ?? false).to.equal(mayPass);
      for (const word of words) expect(said).to.include(word);
      if (not !== undefined) expect(said).not.to.include(not);
      await eventually(async () => {
        const left = await connections(databaseUrl, settings.storage.databaseUrl);
        expect(left).to.deep.equal({ postgresql: 0, redis: 0 });
      });
      await expectFree(free);
    });
  }

  it('a store that is away is waited for, and the start goes on when it comes', async () => {
    const server = await startPostgresServer();
    const databaseUrl = await server.createDatabase();
    await server.kill();
    const told: number[] = [];
    const { issuer } = await startWithRetry(
      () => start({ settings: { storage: { databaseUrl, redisUrl: redis.url } } }),
      (_trouble, secondsLeft) => told.push(secondsLeft),
      { now: () => 0, pause: () => server.restart() },
    );
    expect((await createPerson(issuer).get('/login')).status).to.equal(200);
    expect(told).to.deep.equal([60]);
  });
});

describe('a start whose store is away', () => {
  /** A clock that only pauses move. @returns what was told, and how often it was tried. */
  async function waiting(error: unknown) {
    let time = 0;
    let tries = 0;
    const told: string[] = [];
    const refused = await failureOf(
      startWithRetry<never>(
        async () => {
          tries += 1;
          throw error;
        },
        ({ message }, secondsLeft) => told.push(`${secondsLeft} ${message}`),
        {
          now: () => time,
          async pause(milliseconds) {
            time += milliseconds;
          },
        },
      ),
    );
    return { refused, tries, told };
  }

  it('waits a minute, says so every five seconds, and is then refused as it would have been', async () => {
    const cause = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    const away = new StorageUnavailable('postgresql', cause);
    const { refused, tries, told } = await waiting(away);
    expect({ refused, tries }).to.deep.equal({ refused: away, tries: 61 });
    expect(told).to.have.length(12);
    expect(told[11]).to.match(/^5 the database does not answer/);
  });

  it('does not wait where nobody comes: a wrong password, or a fault of its own', async () => {
    const password = Object.assign(new Error('password'), { code: '28P01' });
    for (const error of [new StorageUnavailable('postgresql', password), new Error('fault')]) {
      expect(await waiting(error)).to.deep.equal({ refused: error, tries: 1, told: [] });
    }
  });
});
