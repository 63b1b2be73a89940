/** `deploy/backup.sh`, on a Redis configured as in real deployments. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, runProgram } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import {
  describeOn,
  openssl,
  postgresServer,
  redisServer,
  required,
} from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { ROOT } from './shipped-files.ts';

const BACKUP = path.join(ROOT, 'deploy/backup.sh');
const REWRITE_PERCENTAGE = 'auto-aof-rewrite-percentage';

const pgDump = { program: findProgram('pg_dump'), remedy: 'pg_dump (package postgresql-client)' };
const redisCli = { program: findProgram('redis-cli'), remedy: 'redis-cli (package redis-tools)' };

describeOn([postgresServer, redisServer, openssl, pgDump, redisCli], 'deploy/backup.sh', () => {
  const folder = temporaryDirectory('backup');
  const file = (name: string): string => path.join(folder, name);

  it('the backup script saves a Redis with TLS, a password and an ACL, and fails without the password', async () => {
    const port = await freePort();
    const certificate = [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', file('redis.key'), '-out', file('redis.crt'), '-days', '2'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ];
    runProgram(required(openssl), certificate, { cwd: folder });
    writeFileSync(file('database-url'), await freshDatabaseUrl());
    const guarded = await startRedisServer({
      ...{ 'tls-port': String(port), 'tls-auth-clients': 'no' },
      ...{ 'tls-cert-file': file('redis.crt'), 'tls-key-file': file('redis.key') },
    });
    const administrator = new Redis(guarded.url);
    const rights = ['+config|get', '+config|set', '+info'];
    await administrator.acl('SETUSER', 'backup', 'on', '>swordfish', ...rights);
    await administrator.acl('SETUSER', 'default', 'resetpass', '>another');
    const command = `redis-cli -h localhost -p ${port} --tls --cacert ${file('redis.crt')}`;
    const backUp = (variables: string) => {
      const kept = temporaryDirectory('kept');
      const script = `export DATABASE_URL_FILE=${file('database-url')} ${variables}; "$0" "$1"`;
      runProgram('bash', ['-ec', script, BACKUP, kept], { cwd: folder });
      return readdirSync(kept);
    };
    expect(() => backUp(`REDIS_CLI='${command}'`))
      .to.throw(/No backup was made: .*NOAUTH/)
      .with.property('message')
      .that.does.not.contain('append-only');
    const made = backUp(`REDIS_CLI='${command} --user backup' REDISCLI_AUTH=swordfish`);
    expect(made).to.have.members(['gatehouse.dump', 'redis.tar']);
    const [, percentage] = (await administrator.config('GET', REWRITE_PERCENTAGE)) as string[];
    expect(percentage, 'as it was before').to.equal('100');
    administrator.disconnect();
  });

  it('the backup script saves a Redis during writes', async () => {
    const redis = await startRedisServer();
    const administrator = new Redis(redis.url);
    const [, redisFolder] = (await administrator.config('GET', 'dir')) as string[];
    await administrator.set('large', 'x'.repeat(5_000_000));
    const script = spawn(path.join(ROOT, 'deploy/backup-redis.sh'), {
      env: {
        PATH: process.env.PATH,
        REDIS_CLI: `redis-cli -p ${new URL(redis.url).port}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // Now tar has opened the file, and blocks until the archive is read.
    await once(script.stdout, 'readable');
    await administrator.set('another', 'y'.repeat(100_000));
    const chunks: Buffer[] = await script.stdout.toArray();
    expect(script.exitCode ?? (await once(script, 'exit'))[0]).to.equal(0);
    administrator.disconnect();
    await redis.stop();
    writeFileSync(file('redis.tar'), Buffer.concat(chunks));
    const unpack = `rm -r ${redisFolder}/appendonlydir; tar -C ${redisFolder} -xf redis.tar`;
    runProgram('sh', ['-ec', unpack], { cwd: folder });
    await redis.restart();
    const restored = new Redis(redis.url);
    expect(await restored.strlen('large')).to.equal(5_000_000);
    restored.disconnect();
  });
});
