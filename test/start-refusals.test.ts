/** What the program refuses to start on: it ends at once, says why, and what to do about it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { fileWith, keysOfEnvironment } from './config/configuration.ts';
import { freshDataDirectory } from './support/embedded-postgres.ts';
import { freshDatabaseUrl } from './support/postgres-server.ts';
import { freePort } from './support/programs.ts';
import { type RedisServer, startRedisServer } from './support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const MAIN = new URL('../src/main.ts', import.meta.url).pathname;

type Variables = Readonly<Record<string, string>>;

/** Starts it with these variables and none of the test's own. @returns what it said before it ended. */
async function refusalOf(environment: Variables): Promise<string> {
  const ports = { PORT: String(await freePort()), GATEHOUSE_OPERATORS_PORT: '0' };
  const child = spawn(process.execPath, [MAIN], {
    env: { ...ports, GATEHOUSE_DATA_DIR: temporaryDirectory('refused'), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 50_000,
  });
  const closed = once(child, 'close');
  const [said, log] = await Promise.all([text(child.stderr), text(child.stdout)]);
  const [exitCode] = await closed;
  expect(exitCode, said).to.equal(1);
  expect(log).to.equal('');
  expect(said, 'a stack helps no operator').not.to.match(/^ +at /m);
  return said;
}

describe('a start is refused, with the remedy,', () => {
  const settings = (yaml: string): Variables => ({ GATEHOUSE_CONFIG: fileWith(yaml) });
  const database = { DATABASE_URL: 'postgres://gate:swordfish@127.0.0.1:1/gatehouse' };

  it('when the issuer is not https', async () => {
    const said = await refusalOf({ GATEHOUSE_ISSUER: 'http://auth.example.com' });
    expect(said).to.include('issuer (from GATEHOUSE_ISSUER)').and.include('is http on a host');
    expect(said).to.include('put a TLS proxy in front and write `https://auth.example.com`');
  });

  it('when a proxy is in front and nobody said how many', async () => {
    const said = await refusalOf({ GATEHOUSE_ISSUER: 'https://auth.example.com' });
    expect(said).to.include('server.proxy_hops').and.include('is not stated');
    expect(said).to.include('write how many of your proxies append to X-Forwarded-For');
  });

  it('when a secret is missing or short', async () => {
    const said = await refusalOf({ ...database, GATEHOUSE_TOKEN_KEYS: 'swordfish' });
    expect(said).to.include('GATEHOUSE_COOKIE_KEYS').and.include('is not set');
    expect(said).to.include('GATEHOUSE_TOKEN_KEYS, key 1 of 1').and.include('has 9 characters');
    expect(said.match(/make a key with `openssl rand -base64 48`/g)).to.have.lengthOf(2);
    expect(said).not.to.include('swordfish');
  });

  it('when the embedded database lacks a migration that nobody may apply', async () => {
    const said = await refusalOf(settings('storage: { auto_migrate: false }'));
    expect(said).to.include('the database schema is behind by 0001');
    expect(said).to.include('set storage.auto_migrate: true for one start');
  });

  it('when the database is not there', async () => {
    const said = await refusalOf({ ...database, ...keysOfEnvironment });
    expect(said).to.include('see that it runs and that its URL is right');
    expect(said).not.to.include('swordfish');
  });
});

describeOn([postgresServer], 'a start on PostgreSQL is refused, with the remedy,', () => {
  it('when it lacks a migration that nobody may apply', async () => {
    const said = await refusalOf({
      ...keysOfEnvironment,
      GATEHOUSE_CONFIG: fileWith('storage: { auto_migrate: false }'),
      DATABASE_URL: await freshDatabaseUrl(),
    });
    expect(said).to.include('the database schema is behind by 0001');
    expect(said).to.include('set storage.auto_migrate: true for one start');
  });
});

describeOn([redisServer], 'a start on Redis is refused, with the remedy,', () => {
  let redis: RedisServer;
  let dataDirectory: string;

  before(async () => {
    redis = await startRedisServer({ 'maxmemory-policy': 'allkeys-lru', appendonly: 'no' });
    dataDirectory = await freshDataDirectory();
  });
  after(() => redis.stop());

  it('when it evicts, and when it keeps nothing on disk', async () => {
    const said = await refusalOf({ GATEHOUSE_DATA_DIR: dataDirectory, REDIS_URL: redis.url });
    expect(said).to.include('evicts keys').and.include('set `maxmemory-policy noeviction`');
    expect(said).to.include('keeps no append-only file').and.include('set `appendonly yes`');
    expect(said).to.include('storage.accept_volatile_redis: true');
  });

  it('when it evicts, though the operator accepts that it keeps nothing', async () => {
    const said = await refusalOf({
      GATEHOUSE_CONFIG: fileWith('storage: { accept_volatile_redis: true }'),
      GATEHOUSE_DATA_DIR: dataDirectory,
      REDIS_URL: redis.url,
    });
    expect(said).to.include('evicts keys').and.not.include('append-only');
  });
});
