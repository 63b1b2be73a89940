/** New embedded databases are unpacked from an image, and each has its own system identifier. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { expect } from 'chai';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { beginFirstStart } from '../../src/base/data-directory.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import {
  CONTROL,
  CONTROL_FILE,
  LAST_FILE,
  LOG_SEGMENT,
  unpackImage,
} from '../../src/storage/embedded/cluster-image.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { imageContent, listCluster } from '../write-embedded-image.ts';
import { startOtherProcess } from './other-process.ts';

describe('the image of a new database', () => {
  let unpacked: string;
  let made: string;

  before('unpack the image, and have PGlite create a database with initdb', async () => {
    unpacked = newFolder('unpacked');
    made = newFolder('initdb');
    expect(unpackImage(unpacked), 'else: npm run embedded-image').to.equal(true);
    await (await PGlite.create(made)).close();
  });

  it('the image contains what initdb of the installed version of PGlite writes', () => {
    const { folders, files } = listCluster(made);
    expect(listCluster(unpacked)).to.deep.equal({ folders, files });
    const differing = files.filter((name) => {
      const [ours, theirs] = [unpacked, made].map((folder) => contentToCompare(folder, name));
      return ours === undefined || theirs === undefined || !ours.equals(theirs);
    });
    expect(differing).to.deep.equal([]);
    expect(files).to.include.members(['postgresql.conf', 'pg_hba.conf', 'base/5/1259']);
  });

  it('of the write-ahead log, the image contains only the last checkpoint', () => {
    const [name = ''] = listCluster(unpacked).files.filter((file) => LOG_SEGMENT.test(file));
    const segment = readFileSync(path.join(unpacked, name));
    expect(segment.length).to.equal(statSync(path.join(made, name)).size);
    expect(segment.equals(imageContent(unpacked, name))).to.equal(true);
  });

  it('another version of PGlite, for which there is no image, gets its database from initdb', () => {
    const folder = path.join(newFolder('other'), 'postgres');
    expect(unpackImage(folder, path.join(folder, 'pglite-0.0.0.image.br'))).to.equal(false);
    expect(existsSync(folder)).to.equal(false);
  });

  it('only the owner may read and write the files of a new database', () => {
    const { folders, files } = listCluster(unpacked);
    const modes = [...folders, ...files].map((name) => statSync(path.join(unpacked, name)).mode);
    expect(modes.filter((mode) => mode & 0o077)).to.deep.equal([]);
  });
});

describe('a database unpacked from the image', () => {
  it('two new databases have different system identifiers and authentication nonces', () => {
    const [one, other] = [newFolder('one'), newFolder('other')].map((folder) => {
      unpackImage(folder);
      return readFileSync(path.join(folder, CONTROL_FILE));
    });
    if (!one || !other) throw new Error('two databases were unpacked');
    const { systemIdentifier, nonce, nonceEnd } = CONTROL;
    // The upper half is the time, which may be different in any case.
    const random = [one, other].map((control) => control.readUInt32LE(systemIdentifier));
    expect(random[0]).not.to.equal(random[1]);
    expect(one.subarray(nonce, nonceEnd).equals(other.subarray(nonce, nonceEnd))).to.equal(false);
  });

  it('a system identifier begins with the time, and the log has the same identifier', async () => {
    const directory = newFolder('time');
    const before = Math.floor(Date.now() / 1_000);
    const database = await openIn(directory);
    const [row] = await database.query<{ id: string; seconds: string }>(
      'SELECT system_identifier AS id, system_identifier >> 32 AS seconds FROM pg_control_system()',
    );
    await database.close();
    expect(Number(row?.seconds)).to.be.within(before, Math.floor(Date.now() / 1_000));
    const log = path.join(directory, 'postgres/pg_wal');
    const segments = readdirSync(log).filter((name) => LOG_SEGMENT.test(`pg_wal/${name}`));
    const identifiers = segments.map((name) => readFileSync(path.join(log, name)).readBigInt64LE(24));
    expect(identifiers.map(String)).to.deep.equal([row?.id]);
  });

  it('after kill -9 of its first process a new database starts again with every acknowledged row', async () => {
    const directory = newFolder('killed');
    const owner = await startOtherProcess(directory, 'own');
    await owner.query('CREATE TABLE stored (id int PRIMARY KEY)');
    for (let id = 0; id < 50; id += 1) await owner.query(`INSERT INTO stored VALUES (${id})`);
    await owner.kill();
    const database = await openIn(directory);
    const rows = await database.query('SELECT count(*)::int, max(id) FROM stored');
    await database.close();
    expect(rows).to.deep.equal([{ count: 50, max: 49 }]);
  });

  it('a first start that ended while the files were written is repeated, wherever it ended', async () => {
    for (const name of ['base/1/1259', 'global/1262', CONTROL_FILE, 'postgresql.conf', LAST_FILE]) {
      const directory = newFolder('interrupted');
      beginFirstStart(directory);
      // A folder in the place of a file ends the unpacking there.
      const obstacle = path.join(directory, 'postgres', name);
      mkdirSync(obstacle, { recursive: true });
      expect(() => unpackImage(path.join(directory, 'postgres'))).to.throw(/EISDIR/);
      rmdirSync(obstacle);
      expect(existsSync(path.join(directory, 'postgres', LAST_FILE)), name).to.equal(false);
      const database = await openIn(directory);
      expect(await database.query('SELECT 1 AS one'), name).to.deep.equal([{ one: 1 }]);
      await database.close();
      expect(readdirSync(directory), name).to.deep.equal(['gatehouse.lock', 'postgres']);
    }
  });

  it('a cursor of the security log is refused by another database that has the same rows', async () => {
    const [one, other] = await Promise.all([openIn(newFolder('one')), openIn(newFolder('other'))]);
    await migrate(one);
    await migrate(other);
    const cursor = await createAuditTrail({ database: one }).end();
    const [place] = await one.query<Record<'generation' | 'origin', string>>(
      'SELECT generation, origin FROM audit_output',
    );
    await other.query('UPDATE audit_output SET generation = $1, origin = $2', [
      place?.generation ?? '',
      place?.origin ?? '',
    ]);
    const page = createAuditTrail({ database: other }).page(cursor, 10);
    const refused = await page.then(
      () => 'accepted',
      ({ code }) => code,
    );
    await one.close();
    await other.close();
    expect(refused).to.equal('cursor_of_another_log');
  });
});

/** Offsets of `time` and `checkPointCopy.time` in ControlFileData, each of eight bytes. */
const TIMES = [24, 104];

/** Returns the content without what is different in each database: identifiers, times, checksum. */
function contentToCompare(cluster: string, name: string): Buffer {
  const content = readFileSync(path.join(cluster, name));
  if (LOG_SEGMENT.test(name)) return Buffer.alloc(0);
  if (name !== CONTROL_FILE) return content;
  content.fill(0, CONTROL.systemIdentifier, CONTROL.systemIdentifier + 8);
  for (const time of TIMES) content.fill(0, time, time + 8);
  return content.fill(0, CONTROL.nonce, CONTROL.checksum + 4);
}

function newFolder(purpose: string): string {
  const folder = temporaryDirectory(purpose);
  // Each cluster has 39 MB: remove it before the end of the run.
  atEndOfFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const openIn = (dataDirectory: string): Promise<OpenDatabase> =>
  openDatabase({ dataDirectory, sharing: 'own', timeoutFactor: TIMEOUT_FACTOR });
