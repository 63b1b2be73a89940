/** A failed start reports the reason and a remedy, and leaves nothing open. */
import { createServer } from 'node:http';
import { Server } from 'node:net';
import { expect } from 'chai';
import { startWithRetry } from '../src/service/start-with-retry.ts';
import { explained, troubleOf } from '../src/service/startup-errors.ts';
import { StorageUnavailable } from '../src/storage/storage-unavailable.ts';
import { failureOf } from './storage/waiting.ts';
import { freshDataDirectory } from './support/embedded-postgres.ts';
import { eventually } from './support/eventually.ts';
import { createOpened } from './support/opened.ts';
import { createPerson } from './support/person.ts';
import { execute, freshDatabaseUrl, freshMigratedDatabaseUrl, startPostgresServer } from './support/postgres-server.ts';
import { freePort } from './support/programs.ts';
import { inRedis, type RedisServer, startRedisServer } from './support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { type Overrides, startsOn, type TestService } from './support/service.ts';

/** Returns the message that an operator gets for a failed start. */
const wordsOf = async (starting: Promise<TestService>): Promise<string> => wordsOfError(await failureOf(starting));

function wordsOfError(error: unknown): string {
  expect(error).to.be.an('error');
  const words = explained(error);
  expect(words, 'no stack trace').not.to.match(/^ +at /m);
  return words;
}

async function expectFree(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}

/** Listens on a port while the calling suite runs. */
function listenOnPort(): () => number {
  const opened = createOpened();
  let taken: number;
  before('listen on a port', async () => {
    taken = await freePort();
    const server = createServer();
    const listening = new Promise<void>((resolve) => server.listen(taken, '127.0.0.1', resolve));
    await opened.add(listening, async () => void server.close());
  });
  after('close the port', opened.closeAll);
  return () => taken;
}

describe('a store that refuses a connection or a write', () => {
  const asPostgres = (code: string, message: string) =>
    new StorageUnavailable('postgresql', Object.assign(new Error(message), { code }));
  const asRedis = (message: string) => new StorageUnavailable('redis', new Error(message));

  it('an error from a store is shown with its own remedy, not with advice about the URL, and the start is retried', () => {
    const full = 'could not extend file "base/16384/2619": No space left on device';
    const cases: readonly (readonly [StorageUnavailable, string])[] = [
      [asPostgres('53100', full), 'free space on the disk of the database'],
      [asPostgres('53300', 'sorry, too many clients already'), 'storage.database_connections'],
      [asRedis('MISCONF Errors writing to the AOF file: No space left on device'), 'free space on the disk of Redis'],
      [
        asRedis('MISCONF Redis is configured to save RDB snapshots, but it is unable to persist'),
        'see the log of Redis for the cause',
      ],
      [asRedis("OOM command not allowed when used memory > 'maxmemory'."), 'raise maxmemory'],
    ];
    for (const [error, remedy] of cases) {
      const trouble = troubleOf(error);
      expect(trouble?.remedy, error.reason).to.include(remedy).and.not.include('URL is correct');
      expect(trouble, error.reason).to.include({ mayPass: true });
    }
  });

  it('a refusal is shown with its remedy, a missing right with the SQL that grants it, and the start is not retried', () => {
    for (const [error, remedy] of [
      [asPostgres('28000', 'role "nobody" does not exist'), 'correct the account and the password in DATABASE_URL'],
      [asPostgres('28P01', 'password authentication failed'), 'correct the account and the password in DATABASE_URL'],
      [asPostgres('3D000', 'database "nowhere" does not exist'), 'correct its name at the end of DATABASE_URL'],
      [asRedis('WRONGPASS invalid username-password pair'), 'correct the account and the password in REDIS_URL'],
      [asRedis('ERR DB index is out of range'), 'correct the database number at the end of REDIS_URL'],
      [asPostgres('42501', 'permission denied for database "gatehouse"'), 'ALTER DATABASE'],
      [asPostgres('42501', 'permission denied to create temporary tables in database "gatehouse"'), 'TEMPORARY'],
      [asPostgres('42501', 'permission denied for schema public'), 'ALTER SCHEMA public OWNER TO'],
      [asPostgres('42501', 'keine Berechtigung für Schema public'), 'ALTER SCHEMA public OWNER TO'],
      [asPostgres('42501', 'permission denied for table accounts'), 'the tables belong to another role'],
      [asRedis("NOPERM this user has no permissions to run the 'evalsha' command"), 'docs/operations/deploy.md'],
      [asRedis("ERR unknown command 'evalsha'"), 'docs/operations/deploy.md'],
    ] as const) {
      expect(troubleOf(error)?.remedy, error.reason).to.include(remedy);
      expect(troubleOf(error), error.reason).to.include({ mayPass: false });
    }
  });
});

describe('a failed start on the embedded database', () => {
  const start = startsOn();
  const taken = listenOnPort();

  it('a start that fails because its port is in use releases the data directory', async () => {
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

  it('if the system cannot share a port between processes, the start fails with an explanation', async () => {
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

describeOn([postgresServer, redisServer], 'a failed start, PostgreSQL and Redis', () => {
  const start = startsOn();
  const taken = listenOnPort();
  let redis: RedisServer;
  let evicting: RedisServer;

  before(async () => {
    redis = await startRedisServer();
    evicting = await startRedisServer({ 'maxmemory-policy': 'allkeys-lru', requirepass: 'trout' });
  });

  /** Counts the connections to this database, and those of other clients to both Redis servers. */
  async function connections(server: string, databaseUrl = server) {
    const text = 'SELECT FROM pg_stat_activity WHERE datname = $1';
    const values = [new URL(databaseUrl).pathname.slice(1)];
    const found = await execute(new URL('/postgres', server).href, { text, values });
    let toRedis = 0;
    for (const { url } of [redis, evicting]) {
      const list = await inRedis(url, async (observer) => String(await observer.client('LIST', 'TYPE', 'NORMAL')));
      toRedis += list.trim().split('\n').length - 1;
    }
    return { postgresql: found?.rowCount ?? 0, redis: toRedis };
  }

  it('a successful start opens connections to PostgreSQL and Redis', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    const service = await start({ settings: { storage: { databaseUrl, redisUrl: redis.url } } });
    const seen = await connections(databaseUrl);
    expect(seen.postgresql).to.be.above(0);
    expect(seen.redis).to.be.above(0);
    await service.close();
  });

  const unused = async () => `127.0.0.1:${await freePort()}`;
  const away = 'check that it is running and that its URL is correct';
  /** A reason at each step of a start. `breaks.slow.ts` makes other faults of the stores, which have the same texts. */
  const reasons: [
    because: string,
    settings: () => Promise<Overrides> | Overrides,
    words: readonly string[],
    not?: string,
  ][] = [
    ['the port is in use', () => ({ server: { port: taken() } }), ['EADDRINUSE']],
    ['the operators’ port is in use', () => ({ server: { operatorsPort: taken() } }), ['EADDRINUSE']],
    [
      'a migration is pending that the service may not apply',
      async () => ({ storage: { databaseUrl: await freshDatabaseUrl(), autoMigrate: false } }),
      ['the database schema lacks 0001', 'run `gatehouse migrate`, or start with storage.auto_migrate: true'],
    ],
    [
      'Redis evicts keys',
      () => ({ storage: { redisUrl: evicting.url } }),
      ['evicts keys', 'set `maxmemory-policy noeviction`'],
      'append-only',
    ],
    [
      'no Redis listens at the URL',
      async () => ({ storage: { redisUrl: `redis://:swordfish@${await unused()}` } }),
      ['redis', away],
      'swordfish',
    ],
    [
      'no PostgreSQL listens at the URL',
      async () => ({ storage: { databaseUrl: `postgres://me:swordfish@${await unused()}/it` } }),
      [away],
      'swordfish',
    ],
    [
      'Redis rejects the password',
      () => ({ storage: { redisUrl: evicting.url.replace('trout', 'swordfish') } }),
      ['correct the account and the password in REDIS_URL'],
      'swordfish',
    ],
    [
      'a host name does not resolve',
      () => ({ storage: { databaseUrl: 'postgres://me@nowhere.invalid/it' } }),
      ['correct the host in DATABASE_URL'],
    ],
  ];
  for (const [because, settingsOf, words, not] of reasons) {
    it(`if ${because}, the start fails with an explanation and leaves no open connection or port`, async () => {
      const free = await freePort();
      const { server, storage } = await settingsOf();
      const databaseUrl = await freshMigratedDatabaseUrl();
      const settings = {
        server: { port: free, ...server },
        storage: { databaseUrl, redisUrl: redis.url, ...storage },
      };
      const error = await failureOf(start({ settings }));
      const message = wordsOfError(error);
      // A start waits only for a store that is unavailable, or whose host name does not resolve yet.
      const mayPass = words.includes(away) || because === 'a host name does not resolve';
      expect(troubleOf(error)?.mayPass ?? false).to.equal(mayPass);
      for (const word of words) expect(message).to.include(word);
      if (not !== undefined) expect(message).not.to.include(not);
      await eventually(async () => {
        const left = await connections(databaseUrl, settings.storage.databaseUrl);
        expect(left).to.deep.equal({ postgresql: 0, redis: 0 });
      });
      await expectFree(free);
    });
  }

  it('a start waits for an unavailable store, and continues when the store is available', async () => {
    const server = await startPostgresServer();
    const databaseUrl = await server.createDatabase();
    await server.kill();
    const reported: number[] = [];
    const { issuer } = await startWithRetry(
      () => start({ settings: { storage: { databaseUrl, redisUrl: redis.url } } }),
      (_trouble, secondsLeft) => reported.push(secondsLeft),
      { now: () => 0, pause: () => server.restart() },
    );
    expect((await createPerson(issuer).get('/login')).status).to.equal(200);
    expect(reported).to.deep.equal([60]);
  });
});

describe('a start waits at most a minute for an unavailable store', () => {
  /** Starts with a clock that only pauses advance. @returns the reports, and the number of tries */
  async function waiting(error: unknown) {
    let time = 0;
    let tries = 0;
    const reports: string[] = [];
    const refused = await failureOf(
      startWithRetry<never>(
        async () => {
          tries += 1;
          throw error;
        },
        ({ message }, secondsLeft) => reports.push(`${secondsLeft} ${message}`),
        {
          now: () => time,
          async pause(milliseconds) {
            time += milliseconds;
          },
        },
      ),
    );
    return { refused, tries, reports };
  }

  it('a start waits a minute for an unavailable store, reports every five seconds, and then fails', async () => {
    const cause = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    const away = new StorageUnavailable('postgresql', cause);
    const { refused, tries, reports } = await waiting(away);
    expect({ refused, tries }).to.deep.equal({ refused: away, tries: 61 });
    expect(reports).to.have.length(12);
    expect(reports[11]).to.match(/^5 the database does not answer/);
  });

  it('the start of the service is not retried after a wrong password or an internal error', async () => {
    const password = Object.assign(new Error('password'), { code: '28P01' });
    for (const error of [new StorageUnavailable('postgresql', password), new Error('fault')]) {
      expect(await waiting(error)).to.deep.equal({ refused: error, tries: 1, reports: [] });
    }
  });
});
