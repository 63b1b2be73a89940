import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { failureOf as operatorFailure } from '../../src/operator/program/failure.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { type DirectoryLock, takeDirectoryLock } from '../../src/storage/embedded/directory-lock.ts';
import { openPatiently } from '../support/databases.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type OtherProcess, startOtherProcess } from './other-process.ts';
import { failureOf } from './waiting.ts';

/** The rows of a test, without those that another process writes one after another. */
const IDS = "SELECT id FROM organizations WHERE id !~ '^[0-9]' ORDER BY created_at, id";
const insert = (id: string) => `INSERT INTO organizations (id, name, created_at) VALUES ('${id}', '', '2030-01-01')`;

describe('a data directory of the embedded database that several processes use', () => {
  let directory: string;
  let linked: string;
  let acknowledged: readonly string[];
  let owners: readonly OtherProcess[];
  const owner = () => owners.find(({ outcome }) => outcome === 'opened');

  before('start three owners at once after one was killed that wrote, and wait until two give up', async () => {
    // Use a path that is longer than the path of a Unix socket may be.
    directory = path.join(temporaryDirectory('long'), 'x'.repeat(100));
    await rename(await freshDataDirectory(), directory);
    linked = path.join(temporaryDirectory('link'), 'linked');
    await symlink(directory, linked);
    const killed = await startOtherProcess(directory, 'own');
    acknowledged = await killed.write(150);
    await killed.kill();
    const names = [directory, linked, `${linked}/`];
    owners = await Promise.all(names.map((name) => startOtherProcess(name, 'own')));
  });
  after(async () => {
    for (const one of owners) await one.kill();
  });

  it('a data directory has one owning process; others are refused with data_directory_in_use', () => {
    const outcomes = owners.map(({ outcome }) => outcome).sort();
    const refused = 'data_directory_in_use';
    expect(outcomes).to.deep.equal([refused, refused, 'opened']);
  });

  it('after kill -9 of its process the embedded database starts again with every acknowledged row', async () => {
    const rows = (await owner()?.query('SELECT id FROM organizations')) as { id: string }[];
    expect(rows.map(({ id }) => id)).to.include.members([...acknowledged]);
    expect(acknowledged).to.have.length.at.least(150);
  });

  it('a database has 8 MB of shared buffers, even if its own settings file says 128 MB', async () => {
    const settings = readFileSync(path.join(directory, 'postgres/postgresql.conf'), 'utf8');
    expect(settings, 'the file is unchanged').to.include('\nshared_buffers = 128MB');
    expect(await owner()?.query('SHOW shared_buffers')).to.deep.equal([{ shared_buffers: '8MB' }]);
  });

  it('a data directory is shared with processes that ask for sharing, by any path that leads to it', async () => {
    const [guest, other] = [
      await startOtherProcess(linked, 'share'),
      await openDatabase({ dataDirectory: directory, sharing: 'share' }),
    ];
    await owner()?.query(insert('of the owner'));
    await guest.query(insert('of the guest'));
    await other.query(insert('of this one'));
    const rows = [{ id: 'of the guest' }, { id: 'of the owner' }, { id: 'of this one' }];
    expect(await owner()?.query(IDS)).to.deep.equal(rows);
    expect(await guest.query(IDS)).to.deep.equal(rows);
    expect(await other.query(IDS)).to.deep.equal(rows);
    await guest.close();
    await other.close();
    expect(await owner()?.query(IDS), 'after the other processes disconnected').to.deep.equal(rows);
  });

  it('a connection that closes while another one is in a transaction does not end that transaction', async () => {
    const other = await openDatabase({ dataDirectory: directory, sharing: 'share' });
    await other.transaction(async (tx) => {
      await tx.query(insert('in a transaction'));
      const passing = connect(path.join(linked, '.s.PGSQL.5432'));
      await once(passing, 'connect');
      passing.destroy();
      await once(passing, 'close');
      // Two round trips: the owner has noticed by then that the connection is closed.
      for (const _ of [1, 2]) expect(await tx.query(IDS)).to.deep.include({ id: 'in a transaction' });
    });
    expect(await other.query(IDS)).to.deep.include({ id: 'in a transaction' });
    await other.query("DELETE FROM organizations WHERE id = 'in a transaction'");
    await other.close();
  });

  it('a process that is killed during a transaction does not block other processes that share the database', async () => {
    const before = await owner()?.query(IDS);
    const guest = await startOtherProcess(directory, 'share');
    expect(await guest.beginTransaction()).to.equal('begun');
    await guest.kill();
    expect(await owner()?.query(IDS)).to.deep.equal(before);
    expect(await owner()?.query(insert('after the guest'))).to.deep.equal([]);
  });
});

describe('a process that is stopped during a transaction does not block the embedded database', () => {
  it('a transaction of a stopped process is undone and blocks no other process; the error names the cause', async () => {
    const dataDirectory = await freshDataDirectory();
    const owner = await openPatiently({ dataDirectory, sharing: 'own', maxIdleMs: 100 });
    const guest = await openPatiently({ dataDirectory, sharing: 'share' });
    const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
    const transaction = guest.transaction(async (tx) => {
      await tx.query(insert('half'));
      stop();
      await goesOn;
      await tx.query(insert('the rest'));
    });
    const failed = failureOf(transaction);
    // On a busy machine the transaction may be lost before.
    await Promise.race([stopped, failed]);
    expect(await owner.query(IDS)).to.deep.equal([]);
    goOn();
    expect(operatorFailure(await failed).text).to.match(
      /was stopped in the middle of it, or did not continue in time \(.*idle-in-transaction/,
    );
    expect(await guest.query(IDS)).to.deep.equal([]);
    await guest.close();
    await owner.close();
  });
});

describe('embedded PostgreSQL', () => {
  it('a shared database is closed only after all other processes have disconnected, and no socket is left behind', async () => {
    const directory = await freshDataDirectory();
    const first = await openDatabase({ dataDirectory: directory, sharing: 'share' });
    const second = await startOtherProcess(directory, 'share');
    await second.query(insert('before'));
    let isClosed = false;
    const closing = first.close().then(() => {
      isClosed = true;
    });
    await delay(100);
    expect(await second.query(insert('while it leaves'))).to.deep.equal([]);
    expect(isClosed).to.equal(false);
    expect(await readdir(directory)).to.include('.s.PGSQL.5432');
    await second.close();
    await closing;
    expect(await readdir(directory)).to.deep.equal(['gatehouse.lock', 'postgres']);

    const next = await openDatabase({ dataDirectory: directory, sharing: 'own' });
    expect(await next.query(IDS)).to.deep.equal([{ id: 'before' }, { id: 'while it leaves' }]);
    await next.close();
  });

  it('the embedded database can be opened after a failed attempt', async () => {
    const directory = await freshDataDirectory();
    const cluster = path.join(directory, 'postgres');
    await rename(cluster, `${cluster}.aside`);
    await writeFile(cluster, 'not a folder');
    let opened: OpenDatabase | undefined;
    await openDatabase({ dataDirectory: directory, sharing: 'own' }).then(
      (database) => (opened = database),
      () => {},
    );
    expect(opened).to.equal(undefined);
    await rm(cluster);
    await rename(`${cluster}.aside`, cluster);
    const database = await openDatabase({ dataDirectory: directory, sharing: 'own' });
    expect(await database.query(IDS)).to.deep.equal([]);
    await database.close();
  });
});

describe('only one caller at a time holds the lock of a data directory', () => {
  it('of ten callers that compete for the lock of a data directory, only one at a time gets the lock', async () => {
    const folder = temporaryDirectory('lock');
    let holders = 0;
    let maxHolders = 0;
    let taken = 0;
    const contend = async (): Promise<void> => {
      let lock: DirectoryLock | undefined;
      while (!lock) {
        await delay(Math.random() * 20);
        lock = await takeDirectoryLock(folder);
      }
      holders += 1;
      taken += 1;
      maxHolders = Math.max(maxHolders, holders);
      await delay(Math.random() * 5);
      holders -= 1;
      lock.release();
    };
    await Promise.all(Array.from({ length: 10 }, contend));
    expect([maxHolders, taken]).to.deep.equal([1, 10]);
  });

  it('a folder that cannot be locked is refused with the cause and the remedy', async () => {
    const folder = temporaryDirectory('lock');
    await mkdir(path.join(folder, 'gatehouse.lock'));
    const refused = await takeDirectoryLock(folder).catch((error: Error) => error);
    expect(refused).to.include({ code: 'data_directory_not_writable' });
    expect((refused as Error).message)
      .to.include('unable to open')
      .and.include('permission');
  });
});
