/** Data directories that only PGlite finds damaged, full disks, and interrupted first starts. */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { beginFirstStart } from '../../src/base/data-directory.ts';
import { loadSettings } from '../../src/config/load.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { migrate, pendingMigrations } from '../../src/storage/migrate.ts';
import { openPatiently } from '../support/databases.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { findProgram } from '../support/programs.ts';
import { describeOn, type Requirement } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { ownDataDirectory } from './damaged-data.ts';
import { startOtherProcess } from './other-process.ts';

/** Only root can mount a disk for a test. */
const mount: Requirement = {
  program: process.getuid?.() === 0 ? findProgram('mount') : undefined,
  remedy: 'mount, and the right to (root)',
};

describe('if PGlite cannot open a data directory, the error says what is known about the cause', () => {
  const on = ownDataDirectory();

  on.refuses(
    {
      'a damaged control file': () => writeFileSync(control(), Buffer.alloc(8_192, 7)),
      'a lost write-ahead log': () => {
        const log = path.join(on.directory, 'postgres/pg_wal');
        for (const name of readdirSync(log)) if (/^[0-9A-F]{24}$/.test(name)) rmSync(path.join(log, name));
      },
    },
    'data_directory_not_opened',
  );

  const control = () => path.join(on.directory, 'postgres/global/pg_control');

  it('if the cause is unknown, the error does not call the data directory damaged, and advises to copy it first', async () => {
    rmSync(path.join(on.directory, 'postgres/global/1262'));
    const refused = await on.refusal();
    expect(refused.code).to.equal('data_directory_not_opened');
    expect(refused.message).to.contain('copy the whole directory before anything else').and.not.contain('damaged');
    // A disk that accepts no writes fails in the same way, and its data is intact.
    expect(refused.message).to.match(/the data may be unchanged.*read-only.*inodes.*quota.*put a backup/);
  });

  describeOn([mount], 'on a full disk', () => {
    const disk = temporaryDirectory('disk');
    before(() => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=120m,mode=700', 'tmpfs', disk]);
    });
    after(() => void execFileSync('umount', [disk]));

    it('opening a data directory reports a full disk instead of damage, and succeeds once there is space', async () => {
      cpSync(on.directory, disk, { recursive: true });
      on.directory = disk;
      const ballast = path.join(disk, 'ballast');
      // Append in pieces until the disk is full.
      expect(() => {
        for (;;) appendFileSync(ballast, Buffer.alloc(65_536, 1));
      }).to.throw(/ENOSPC/);
      const { code, message } = await on.refusal();
      expect(code).to.equal('disk_full');
      expect(message).to.contain('free some space').and.not.contain('backup');
      rmSync(ballast);
      const database = await openIn(disk);
      expect(await pendingMigrations(database)).to.deep.equal([]);
      await database.close();
    });
  });
});

describe('a first start that was interrupted can be repeated safely', () => {
  const directory = path.join(temporaryDirectory('first'), 'data');
  let owner: OpenDatabase;

  before(async () => {
    const environment = { GATEHOUSE_DATA_DIR: directory };
    loadSettings({ environment });
    const killed = fork(path.join(import.meta.dirname, 'other-process.ts'), [directory, 'own'], { execArgv: [] });
    const exited = once(killed, 'exit');
    // PGlite writes this file before it has written all others.
    await eventually(() => expect(existsSync(path.join(directory, '.new-postgres/PG_VERSION'))).to.equal(true));
    killed.kill('SIGKILL');
    await exited;
    expect(existsSync(path.join(directory, 'postgres'))).to.equal(false);
    loadSettings({ environment });
    owner = await openIn(directory);
  });
  after(async () => {
    await owner?.close();
    // A database has 39 MB: remove it before the end of the run.
    rmSync(directory, { recursive: true, force: true });
  });

  it('only one of several processes repeats a first start that was interrupted', async () => {
    const guests = await Promise.all([0, 1].map(() => openPatiently({ dataDirectory: directory, sharing: 'share' })));
    const applied = await Promise.all([owner, ...guests].map((one) => migrate(one)));
    expect(applied.filter((names) => names.length > 0)).to.have.length(1);
    expect(await pendingMigrations(owner)).to.deep.equal([]);
    const other = await startOtherProcess(directory, 'share');
    expect(other.outcome).to.equal('opened');
    await other.close();
    for (const guest of guests) await guest.close();
  });

  it('only the owner may read and write the files of a new database, including files created later', async () => {
    await owner.query('CREATE TABLE later AS SELECT generate_series(1, 1000) AS number');
    const cluster = path.join(directory, 'postgres');
    const names = ['', ...readdirSync(cluster, { recursive: true, encoding: 'utf8' })];
    // Caches of the catalog contain no rows, and PGlite writes them readable.
    const maskOf = (name: string) => (path.basename(name) === 'pg_internal.init' ? 0o033 : 0o077);
    const open = names.filter((name) => statSync(path.join(cluster, name)).mode & maskOf(name));
    expect(names.length).to.be.above(900);
    expect(open).to.deep.equal([]);
  });

  it('a cursor of a security log is refused by a new database to which the rows of this log were copied', async () => {
    await migrate(owner);
    const one = await openIn(await freshDataDirectory());
    const { next: cursor } = await createAuditTrail({ database: one }).page('start', 1);
    const [place] = await one.query<Record<'generation' | 'origin', string>>(
      'SELECT generation, origin FROM audit_generation',
    );
    await one.close();
    await owner.query('UPDATE audit_generation SET generation = $1, origin = $2', [
      place?.generation ?? '',
      place?.origin ?? '',
    ]);
    const page = createAuditTrail({ database: owner }).page(cursor, 10);
    const refused = await page.then(
      () => 'accepted',
      ({ code }) => code,
    );
    expect(refused).to.equal('cursor_of_another_log');
  });
});

describe('a first start never deletes existing files', () => {
  it('a first start does not delete files in the place of the database, and reports them', async () => {
    const directory = temporaryDirectory('occupied');
    atEndOfFile(() => rmSync(directory, { recursive: true, force: true }));
    beginFirstStart(directory);
    mkdirSync(path.join(directory, 'postgres/base'), { recursive: true });
    const refused = await openIn(directory).catch((error) => error);
    expect(refused).to.include({ code: 'data_directory_not_opened' });
    expect(refused.message).to.include('has no database yet').and.include('not empty');
    expect(refused.message).to.include('unpacked only in part');
    expect(readdirSync(path.join(directory, 'postgres'))).to.deep.equal(['base']);
  });
});

const openIn = (dataDirectory: string): Promise<OpenDatabase> => openPatiently({ dataDirectory, sharing: 'own' });
