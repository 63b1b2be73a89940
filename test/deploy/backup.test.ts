/** `deploy/backup.sh`, on a Redis configured as in real deployments. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, runProgram } from '../support/programs.ts';
import { inRedis, type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, openssl, postgresServer, redisServer, required } from '../support/requirements.ts';
import { writeCertificate } from '../support/reverse-proxies.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { ROOT } from './shipped-files.ts';

const BACKUP = path.join(ROOT, 'deploy/backup.sh');
const REWRITE_PERCENTAGE = 'auto-aof-rewrite-percentage';

const pgDump = { program: findProgram('pg_dump'), remedy: 'pg_dump (package postgresql-client)' };
const redisCli = { program: findProgram('redis-cli'), remedy: 'redis-cli (package redis-tools)' };

describeOn([postgresServer, redisServer, openssl, pgDump, redisCli], 'deploy/backup.sh', () => {
  const folder = temporaryDirectory('backup');
  const file = (name: string): string => path.join(folder, name);

  /** Runs `backup.sh` with these variables. @returns the files that are there afterwards */
  const backUp = (variables: string, kept = temporaryDirectory('kept')): string[] => {
    runProgram('bash', ['-ec', `export ${variables}; "$0" "$1"`, BACKUP, kept], { cwd: folder });
    return readdirSync(kept);
  };

  /** Starts `backup-redis.sh`, whose archive is larger than a pipe: it waits until that is read. */
  const startBackup = ({ url }: { readonly url: string }) =>
    spawn('/bin/sh', [path.join(ROOT, 'deploy/backup-redis.sh')], {
      env: { PATH: process.env.PATH, REDIS_CLI: `redis-cli -p ${new URL(url).port}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const ended = async (script: ReturnType<typeof startBackup>): Promise<number | null> =>
    script.exitCode ?? (await once(script, 'exit'))[0];

  it('the backup script works with TLS, a password and an ACL in Redis, and fails without the password', async () => {
    const port = await freePort();
    const [certificate, key] = writeCertificate(folder);
    writeFileSync(file('database-url'), await freshDatabaseUrl());
    const guarded = await startRedisServer({
      'tls-port': String(port),
      'tls-auth-clients': 'no',
      'tls-cert-file': certificate,
      'tls-key-file': key,
    });
    const administrator = new Redis(guarded.url);
    const rights = ['+config|get', '+config|set', '+info'];
    await administrator.acl('SETUSER', 'backup', 'on', '>swordfish', ...rights);
    await administrator.acl('SETUSER', 'default', 'resetpass', '>another');
    const command = `redis-cli -h localhost -p ${port} --tls --cacert ${certificate}`;
    const database = `DATABASE_URL_FILE=${file('database-url')}`;
    expect(() => backUp(`${database} REDIS_CLI='${command}'`))
      .to.throw(/No backup was made: .*NOAUTH/)
      .with.property('message')
      .that.does.not.contain('append-only');
    const made = backUp(`${database} REDIS_CLI='${command} --user backup' REDISCLI_AUTH=swordfish`);
    expect(made).to.have.members(['gatehouse.dump', 'redis.tar']);
    const [, percentage] = (await administrator.config('GET', REWRITE_PERCENTAGE)) as string[];
    expect(percentage, 'as it was before').to.equal('100');
    administrator.disconnect();
  });

  it('the backup script makes a complete backup of Redis during writes', async () => {
    const redis = await startRedisServer();
    const administrator = new Redis(redis.url);
    const [, redisFolder] = (await administrator.config('GET', 'dir')) as string[];
    await administrator.set('large', 'x'.repeat(5_000_000));
    const script = startBackup(redis);
    // Now tar has opened the file, and blocks until the archive is read.
    await once(script.stdout, 'readable');
    await administrator.set('another', 'y'.repeat(100_000));
    const chunks: Buffer[] = await script.stdout.toArray();
    expect(await ended(script)).to.equal(0);
    administrator.disconnect();
    await redis.stop();
    writeFileSync(file('redis.tar'), Buffer.concat(chunks));
    const unpack = `rm -r ${redisFolder}/appendonlydir; tar -C ${redisFolder} -xf redis.tar`;
    runProgram('sh', ['-ec', unpack], { cwd: folder });
    await redis.restart();
    expect(await inRedis(redis.url, (restored) => restored.strlen('large'))).to.equal(5_000_000);
  });

  describe('an interrupted or refused backup leaves Redis with its original settings', () => {
    let redis: RedisServer;
    let administrator: Redis;
    const percentage = async (): Promise<string | undefined> =>
      ((await administrator.config('GET', REWRITE_PERCENTAGE)) as string[])[1];

    before(async () => {
      redis = await startRedisServer();
      administrator = new Redis(redis.url);
      await administrator.set('large', 'x'.repeat(5_000_000));
      await administrator.config('SET', REWRITE_PERCENTAGE, '80');
    });
    after(() => administrator.disconnect());

    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGPIPE'] as const) {
      it(`after ${signal} ends a backup, Redis may rewrite its files again`, async () => {
        const script = startBackup(redis);
        await once(script.stdout, 'readable');
        expect(await percentage()).to.equal('0');
        script.kill(signal);
        expect(await ended(script)).to.equal(128 + constants.signals[signal]);
        expect(await percentage()).to.equal('80');
      });
    }

    it('after the reader of a backup disconnects, Redis may rewrite its files again', async () => {
      const script = startBackup(redis);
      await once(script.stdout, 'readable');
      script.stdout.destroy();
      script.stderr.destroy();
      expect(await ended(script)).to.be.above(0);
      expect(await percentage()).to.equal('80');
    });

    it('a second parallel backup is refused, and does not touch the Redis setting that the first one has changed', async () => {
      const first = startBackup(redis);
      await once(first.stdout, 'readable');
      const second = startBackup(redis);
      const errors = await text(second.stderr);
      expect(await ended(second)).to.equal(1);
      const repair = /^ {2}(redis-cli .*)$/m.exec(errors)?.[1] ?? '';
      expect(repair).to.contain(`config set ${REWRITE_PERCENTAGE} 100`);
      expect(await percentage()).to.equal('0');
      first.stdout.resume();
      expect(await ended(first)).to.equal(0);
      expect(await percentage()).to.equal('80');

      // A backup that was killed cannot repair the setting. Its successor says how.
      await administrator.config('SET', REWRITE_PERCENTAGE, '0');
      runProgram('sh', ['-ec', repair], { cwd: folder });
      expect(await percentage()).to.equal('100');
      await administrator.config('SET', REWRITE_PERCENTAGE, '80');
    });
  });

  it('the password of the database is on no command line, and a failed backup leaves no files', async () => {
    const redis = await startRedisServer();
    const url = new URL(await freshDatabaseUrl());
    writeFileSync(file('secret-url'), `postgres://postgres:s%40cret%2f%25@${url.host}${url.pathname}\n`);
    const programs = temporaryDirectory('programs');
    const fake = path.join(programs, 'pg_dump');
    writeFileSync(
      fake,
      `#!/bin/sh\nprintf '%s\\n' "$PGPASSWORD" "$@" > ${file('seen')}\nexec ${required(pgDump)} "$@"\n`,
      { mode: 0o755 },
    );
    const kept = temporaryDirectory('kept');
    const port = new URL(redis.url).port;
    const variables = `PATH=${programs}:$PATH DATABASE_URL_FILE=${file('secret-url')} REDIS_CLI='redis-cli -p ${port}'`;
    const files = ['gatehouse.dump', 'redis.tar'];
    expect(backUp(variables, kept)).to.have.members(files);
    const [password, ...args] = readFileSync(file('seen'), 'utf8').split('\n');
    expect(password).to.equal('s@cret/%');
    expect(args.join(' ')).to.contain(`--dbname=postgres://postgres@${url.host}/`).and.not.contain('cret');
    writeFileSync(fake, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    expect(() => backUp(variables, kept)).to.throw();
    expect(readdirSync(kept)).to.have.members(files);
  });

  const connect = (url: string): string => {
    writeFileSync(file('any-url'), url);
    writeFileSync(file('show'), '#!/bin/sh\necho "$PGPASSWORD" "$@" > shown\n', { mode: 0o755 });
    const script = path.join(ROOT, 'deploy/with-database.sh');
    const shown = `DATABASE_URL_FILE=${file('any-url')} sh ${script} ${file('show')}`;
    runProgram('sh', ['-c', shown], { cwd: folder });
    return readFileSync(file('shown'), 'utf8').trim();
  };

  it('the password of the database may contain an @', () => {
    expect(connect('postgres://ada:s@cret@host:5/db')).to.equal('s@cret --dbname=postgres://ada@host:5/db');
    expect(connect('postgresql://ada@host/db')).to.equal('--dbname=postgresql://ada@host/db');
  });

  it('a URL whose password could appear on a command line is refused before any program receives the URL', () => {
    for (const [url, cause] of [
      ['postgres://ada:100%@host/db', /Write % .* as %25/],
      ['mysql://ada:secret@host/db', /does not begin with postgres/],
      ['postgres://ada@host/db?password=secret', /before the host/],
      ['postgres://ada@host/db?sslmode=require&sslpassword=secret', /before the host/],
    ] as const) {
      expect(() => connect(url), url)
        .to.throw(cause)
        .with.property('message')
        .that.does.not.contain('secret');
    }
  });
});
