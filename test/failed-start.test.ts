/** A start that fails: the reason is told, and nothing of it stays open. */
import { createServer } from 'node:http';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { failureOf } from './storage/waiting.ts';
import { freshDataDirectory } from './support/embedded-postgres.ts';
import { eventually } from './support/eventually.ts';
import { createOpened } from './support/opened.ts';
import { createPerson } from './support/person.ts';
import { freshDatabaseUrl, freshMigratedDatabaseUrl } from './support/postgres-server.ts';
import { freePort } from './support/programs.ts';
import { type RedisServer, startRedisServer } from './support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { type Overrides, type StartOptions, startTestService } from './support/service.ts';

/** A port that somebody listens on. */
async function takenPort(opened: ReturnType<typeof createOpened>): Promise<number> {
  const port = await freePort();
  const server = createServer();
  const listening = new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await opened.add(listening, async () => void server.close());
  return port;
}

async function expectFree(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}

describe('a start that fails, embedded', () => {
  const opened = createOpened();
  afterEach(opened.closeAll);

  for (const taken of ['port', 'operatorsPort'] as const) {
    it(`because the ${taken} is taken leaves the data directory to the next one`, async () => {
      const dataDirectory = await freshDataDirectory();
      const port = await freePort();
      const server = { port, [taken]: await takenPort(opened) };
      const failed = await failureOf(
        startTestService({ settings: { server, storage: { dataDirectory } } }),
      );
      expect(failed).to.include({ code: 'EADDRINUSE' });

      await expectFree(port);
      const next = startTestService({ settings: { server: { port }, storage: { dataDirectory } } });
      const service = await opened.add(next, ({ close }) => close());
      expect((await createPerson(service.issuer).get('/login')).status).to.equal(200);
    });
  }
});

describeOn([postgresServer, redisServer], 'a start that fails, PostgreSQL and Redis', () => {
  let redis: RedisServer;
  let evicting: RedisServer;
  const opened = createOpened();

  before(async () => {
    redis = await startRedisServer();
    evicting = await startRedisServer({ 'maxmemory-policy': 'allkeys-lru' });
  });
  afterEach(opened.closeAll);
  after(async () => {
    await redis?.stop();
    await evicting?.stop();
  });

  /** How many connections others have to each of the two. */
  async function connections(databaseUrl: string, server: RedisServer): Promise<unknown> {
    const { pathname } = new URL(databaseUrl);
    const client = new pg.Client({ connectionString: new URL('/postgres', databaseUrl).href });
    const observer = new Redis(server.url);
    await client.connect();
    try {
      const { rowCount } = await client.query('SELECT 1 FROM pg_stat_activity WHERE datname = $1', [
        pathname.slice(1),
      ]);
      const list = String(await observer.client('LIST', 'TYPE', 'NORMAL'));
      return { postgresql: rowCount, redis: list.trim().split('\n').length - 1 };
    } finally {
      await client.end();
      observer.disconnect();
    }
  }

  const start = (settings: Overrides, options: StartOptions = {}) =>
    opened.add(startTestService({ deployment: 'postgres', settings, ...options }), ({ close }) =>
      close(),
    );

  async function expectNothingOpen(
    settings: Overrides & { storage: { databaseUrl: string } },
    server: RedisServer = redis,
  ): Promise<unknown> {
    const failed = await failureOf(start(settings));
    expect(failed).to.be.an('error');
    await eventually(async () => {
      const none = { postgresql: 0, redis: 0 };
      expect(await connections(settings.storage.databaseUrl, server)).to.deep.equal(none);
    });
    return failed;
  }

  it('the connections of one that succeeds are seen', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    await start({ storage: { databaseUrl, redisUrl: redis.url } });
    expect(await connections(databaseUrl, redis)).to.satisfy(
      (seen: { postgresql: number; redis: number }) => seen.postgresql > 0 && seen.redis > 0,
    );
  });

  for (const taken of ['port', 'operatorsPort'] as const) {
    it(`because the ${taken} is taken leaves no connection and no port`, async () => {
      const databaseUrl = await freshMigratedDatabaseUrl();
      const port = await freePort();
      const server = { port, [taken]: await takenPort(opened) };
      const storage = { databaseUrl, redisUrl: redis.url };
      expect(await expectNothingOpen({ server, storage })).to.include({ code: 'EADDRINUSE' });
      await expectFree(port);
    });
  }

  it('because a migration is pending leaves no connection', async () => {
    const databaseUrl = await freshDatabaseUrl();
    const storage = { databaseUrl, redisUrl: redis.url, autoMigrate: false };
    expect(await expectNothingOpen({ storage })).to.include({ name: 'MigrationsPending' });
  });

  it('because Redis evicts leaves no connection', async () => {
    const storage = { databaseUrl: await freshMigratedDatabaseUrl(), redisUrl: evicting.url };
    expect(await expectNothingOpen({ storage }, evicting)).to.include({ name: 'UnsafeRedis' });
  });

  it('because nobody is where Redis should be leaves no connection', async () => {
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    const storage = { databaseUrl: await freshMigratedDatabaseUrl(), redisUrl };
    expect(await expectNothingOpen({ storage })).to.include({ name: 'StorageUnavailable' });
  });
});
