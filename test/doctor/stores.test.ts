import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { check, runChecks } from '../../src/doctor/check.ts';
import { ok, problem } from '../../src/doctor/findings.ts';
import type { Needs } from '../../src/doctor/needs.ts';
import { clockTrouble } from '../../src/doctor/nodes.ts';
import { connectRedis, createRedis } from '../../src/storage/redis/redis.ts';
import { createRedisStore } from '../../src/storage/redis/store.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { fileWith } from '../config/configuration.ts';
import { failureOf } from '../storage/waiting.ts';
import { createOpened } from '../support/opened.ts';
import { execute, freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { examine } from './doctor-findings.ts';

describeOn([postgresServer, redisServer], 'operator doctor, checking the stores', () => {
  const opened = createOpened();
  after(opened.closeAll);
  let issuer: string;
  before(async () => {
    issuer = `http://localhost:${await freePort()}`;
  });
  const withStores = (DATABASE_URL: string, REDIS_URL = '') =>
    examine({ GATEHOUSE_ISSUER: issuer, DATABASE_URL, REDIS_URL });

  it('the doctor warns of a Redis that is nearly full', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    const server = await startRedisServer();
    const redis = await opened.add(Promise.resolve(new Redis(server.url)), async (one) => one.disconnect());
    const unlimited = await withStores(databaseUrl, server.url);
    expect(unlimited.of('redis').status).to.equal('ok');
    expect(unlimited.output).not.to.contain('redis_memory');
    // Large enough that the memory of the doctor's own connections does not change the percentage.
    await redis.setrange('filler', 64 * 1024 ** 2, 'x');
    const [, used = ''] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
    for (const [percent, status] of [
      [70, 'ok'],
      [90, 'warning'],
      [97, 'problem'],
    ] as const) {
      await redis.config('SET', 'maxmemory', Math.round((Number(used) * 100) / percent));
      const found = (await withStores(databaseUrl, server.url)).of('redis_memory');
      expect(found.status, found.message).to.equal(status);
    }
  });

  it('the doctor names the migrations of a later version', async () => {
    const databaseUrl = await freshMigratedDatabaseUrl();
    await execute(databaseUrl, "INSERT INTO gatehouse_migrations (name, run_on) VALUES ('9999_later', now())");
    const { of } = await withStores(databaseUrl);
    expect(of('migrations')).to.include({ status: 'ok' });
    expect(of('migrations').message).to.contain('9999_later of a later version');
  });

  it('the doctor and /readyz detect a Redis account that lacks a permission that requests need', async () => {
    const server = await startRedisServer();
    const redis = await opened.add(Promise.resolve(new Redis(server.url)), async (one) => one.disconnect());
    const url = server.url.replace('redis://', 'redis://few:secret@');
    const allowOnly = (...less: string[]) =>
      redis.call('ACL', 'SETUSER', 'few', 'reset', 'on', '>secret', '~*', '&*', '+@all', ...less);
    const few = createRedis(url, { timeoutFactor: TIMEOUT_FACTOR });
    await opened.add(Promise.resolve(few), async (one) => one.disconnect());
    await allowOnly();
    await connectRedis(few);
    const { ping } = createRedisStore({ redis: few, clock: Date.now });
    await ping();
    for (const less of [['-set'], ['-mget'], ['-getdel'], ['-evalsha'], ['-eval']]) {
      await allowOnly(...less);
      const { of } = await withStores(await freshMigratedDatabaseUrl(), url);
      expect(of('redis'), `${less}`).to.include({ status: 'problem', where: 'REDIS_URL' });
      expect(of('redis').message).to.contain('NOPERM');
      expect(of('redis').remedy).to.contain('docs/operations/deploy.md has the whole line');
      expect(of('flow').status).to.equal('not_checked');
      const failure = expect(await failureOf(ping()), `${less}`).to.be.instanceOf(StorageUnavailable);
      failure.and.property('reason').contains('NOPERM');
    }
  });

  it('the doctor accepts tables of other programs, but warns of Gatehouse tables that its role cannot migrate', async () => {
    const { url, admin, role } = await withRole();
    await admin.query(`GRANT USAGE ON SCHEMA public TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
      CREATE TABLE spatial_ref_sys (srid integer)`);
    const { of } = await withStores(url);
    expect(of('database_connections').status).to.equal('ok');
    expect(of('database_owner')).to.include({ status: 'warning', where: 'DATABASE_URL' });
    expect(of('database_owner').message).to.match(/^\d\d table\(s\) belong to postgres, /);
    expect(of('database_owner').remedy).to.contain('give the tables to the role of Gatehouse');
    const file = fileWith('storage: { auto_migrate: false }', 'no-migration.yaml');
    const { troubles } = await examine({ GATEHOUSE_ISSUER: issuer, DATABASE_URL: url, GATEHOUSE_CONFIG: file });
    expect(troubles.map(({ check }) => check)).not.to.contain('database_owner');
  });

  it('the doctor warns of a database role whose connection limit is too low for the nodes', async () => {
    const { url, admin, role } = await withRole();
    await admin.query(`GRANT pg_read_all_settings TO ${role}; ALTER ROLE ${role} CONNECTION LIMIT 5;
      ALTER SCHEMA public OWNER TO ${role}`);
    const tables = await admin.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");
    for (const { name } of tables.rows) await admin.query(`ALTER TABLE ${name} OWNER TO ${role}`);
    const found = (await withStores(url)).of('database_connections');
    expect(found, found.message).to.include({ status: 'warning', where: 'DATABASE_URL' });
    expect(found.message).to.contain(`the role ${role} allows 5`);
    expect(found.remedy).to.contain(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    // A node counts with its own setting, not with the doctor's. It is not silent however slow this machine is.
    const runsWith = { ...READY_NODE.runsWith, databaseConnections: 50 };
    await admin.query(
      `INSERT INTO node_keys (node, seen_at, noted_at, cookie_keys, token_keys, state, runs_with)
        VALUES ('web:1', now(), now() + interval '10 minutes', '{}', '{}', 'ready', $1)`,
      [runsWith],
    );
    expect((await withStores(url)).of('database_connections').message).to.contain('1 node(s) may open 51 connections');
  });

  /** Adds a role without rights to a database whose tables belong to the administrator. */
  async function withRole() {
    const url = new URL(await freshMigratedDatabaseUrl());
    const admin = new pg.Client(url.href);
    await opened.add(
      admin.connect().then(() => admin),
      (one) => one.end(),
    );
    const role = `other_${randomBytes(4).toString('hex')}`;
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    Object.assign(url, { username: role, password: 'secret' });
    return { url: url.href, admin, role };
  }
});

describe('operator doctor, checking nodes, clocks and settings', () => {
  it('the doctor reports a clock wrong by over a second as a warning, by over five as a problem', () => {
    const statusAt = (aheadMs: number) => clockTrouble({ node: 'web:1', aheadMs })[0]?.status;
    expect([-999, 1_000].map(statusAt)).to.deep.equal([undefined, undefined]);
    expect([-1_001, 5_000].map(statusAt)).to.deep.equal(['warning', 'warning']);
    expect([-5_001, 60_000].map(statusAt)).to.deep.equal(['problem', 'problem']);
  });

  it('the doctor never shows text from another server as a remedy', () => {
    const foreign = 'no\0 → type this';
    const { message, remedy } = problem`it answers ${foreign} → ask ${foreign}`;
    expect({ message, remedy }).to.deep.equal({ message: `it answers ${foreign}`, remedy: `ask ${foreign}` });
  });

  it('the doctor continues after a failed statement; if a store is lost, it lists what it could not check', async () => {
    const failing = (name: string, code: string) =>
      check(name, ['settings'], '', () => {
        throw new StorageUnavailable('postgresql', Object.assign(new Error('no answer'), { code }));
      });
    const fine = (name: string, need: 'settings' | 'nodes' | 'running') => check(name, [need], '', () => ok('fine'));
    const needs = { settings: async () => ({}), nodes: async () => [] } as unknown as Needs;
    const options = { environment: {}, signal: new AbortController().signal, by: { operator: 'tests' } };
    const checks = [failing('slow', '57014'), fine('nodes', 'nodes'), failing('lost', '57P01')];
    const found = await runChecks(
      [...checks, fine('keys', 'nodes'), fine('node_versions', 'running'), fine('mail', 'settings')],
      () => needs,
      options,
      () => {},
    );
    expect(found.map(({ check: name, status }) => `${name} ${status}`)).to.deep.equal([
      'slow problem',
      'nodes ok',
      'lost problem',
      'keys not_checked',
      'node_versions not_checked',
      'mail ok',
    ]);
  });

  it('if the settings are wrong, the doctor reports all their problems and checks nothing else', async () => {
    const wrong = { GATEHOUSE_ISSUER: 'http://auth.example.com', PORT: 'eighty' };
    const { troubles, of, exitCode } = await examine(wrong);
    expect(troubles.map(({ check }) => check)).to.deep.equal(['settings', 'settings']);
    expect(of('everything_else').message).to.equal('not checked: the settings have problems');
    expect(exitCode).to.equal(1);
  });
});
