/** A node is not ready while PostgreSQL is read-only or has no space, and recovers by itself. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { rm, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { counted, readinessOf, scrape } from '../support/metrics.ts';
import { clientCredentials } from '../support/oauth.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { runsAsRoot } from '../support/programs.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const readyz = async (service: TestService) => (await readinessOf(service)).body;

/** Asserts that the node is ready before `harm`, then not ready, and ready again after `undo`. */
async function expectNoticed(
  service: TestService,
  { reason, harm, undo }: { reason: RegExp; harm(): Promise<void>; undo(): Promise<void> },
): Promise<void> {
  expect(await readyz(service)).to.include({ status: 'ready' });
  await harm();
  try {
    await eventually(async () => {
      const body = await readyz(service);
      expect(body).to.include({ status: 'not ready', database: 'away', tokens: 'away' });
      expect(body.reason).to.match(reason);
    });
    expect(counted(await scrape(service), 'gatehouse_store_up')).to.deep.equal({});
  } finally {
    await undo();
  }
  await eventually(async () => {
    expect(await readyz(service)).to.deep.equal({ status: 'ready', database: 'ok', tokens: 'ok' });
  });
}

describeOn([postgresServer], 'a node whose PostgreSQL cannot write', () => {
  const start = startsOn('postgres');
  let service: TestService;
  let machine: Seed['clients']['machine'];
  let operator: pg.Client;

  before(async () => {
    const server = await startPostgresServer();
    const databaseUrl = await server.createDatabase();
    service = await start({ settings: { storage: { databaseUrl } } });
    ({ machine } = (await seed(service)).clients);
    operator = new pg.Client({ connectionString: databaseUrl });
    await operator.connect();
  });
  after(() => operator?.end());

  async function set(setting: string): Promise<void> {
    // Reset this session, which may already be read-only itself.
    await operator.query('SET default_transaction_read_only = off');
    await operator.query(`ALTER SYSTEM ${setting}`);
    await operator.query('SELECT pg_reload_conf()');
  }

  it('a node is not ready while the database is read-only, and recovers by itself', () =>
    expectNoticed(service, {
      reason: /read-only/,
      async harm() {
        await set('SET default_transaction_read_only = on');
        await eventually(async () => {
          const answer = await clientCredentials(service.issuer, machine);
          expect(answer.status).to.equal(503);
        });
      },
      undo: () => set('RESET default_transaction_read_only'),
    }));

  it('while the database is read-only, a node refuses wrong secrets, and warns that it counts them by itself', async () => {
    await set('SET default_transaction_read_only = on');
    try {
      await eventually(async () => expect((await clientCredentials(service.issuer, machine)).status).to.equal(503));
      await eventually(async () => {
        expect((await clientCredentials(service.issuer, { ...machine, secret: 'wrong' })).status).to.equal(401);
        expect(service.logLines.join('')).to.contain('attempts are counted by this process only');
      });
    } finally {
      await set('RESET default_transaction_read_only');
    }
  });

  it('a node is not ready while PostgreSQL cannot extend any file, and recovers by itself', () =>
    expectNoticed(service, {
      reason: /temp_file_limit/,
      harm: () => set("SET temp_file_limit = '1kB'"),
      undo: () => set('RESET temp_file_limit'),
    }));
});

describe('a node with an embedded database on a full disk recovers when the disk has space again', () => {
  let disk: string;
  let service: TestService | undefined;

  before('mount a small disk', async function () {
    disk = temporaryDirectory('disk');
    // Only root may mount a disk, and a container may forbid even that.
    if (!runsAsRoot) this.skip();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=120m', 'none', disk], { stdio: 'pipe' });
    } catch {
      this.skip();
    }
    const data = path.join(disk, 'data');
    mkdirSync(data, { mode: 0o700 });
    const storage = { dataDirectory: await freshDataDirectory(data) };
    service = await startTestService({ settings: { storage } });
  });
  after(async () => {
    await service?.close();
    if (service) execFileSync('umount', ['--lazy', disk]);
  });

  it('a node whose store has a full disk is not ready until the disk has space again', async () => {
    if (!service) throw new Error('not started');
    const filling = path.join(disk, 'filling');
    await expectNoticed(service, {
      reason: /No space left on device/,
      async harm() {
        const { bavail, bsize } = await statfs(disk);
        await writeFile(filling, Buffer.alloc(bavail * bsize));
      },
      undo: () => rm(filling),
    });
  });
});
