/** A damaged data directory is refused with an explanation. `damaged-data.slow.ts` has what only PGlite finds damaged. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadSettings } from '../../src/config/load.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { POSTGRES_VERSION } from '../../src/storage/embedded/failed-open.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

describe('opening a data directory', () => {
  let directory: string;

  beforeEach(async () => {
    directory = await freshDataDirectory();
  });

  /** Returns the error with which opening the directory fails. */
  async function refusal(): Promise<Error & { code?: string }> {
    try {
      const database = await openDatabase({
        dataDirectory: directory,
        sharing: 'own',
        timeoutFactor: TIMEOUT_FACTOR,
      });
      await database.close();
    } catch (error) {
      return error as Error;
    }
    throw new Error('the directory was opened');
  }

  for (const [what, damage] of [
    ['a database that lacks its PG_VERSION', () => rmSync(path.join(directory, 'postgres/PG_VERSION'))],
    [
      'secrets but no database',
      () => {
        rmSync(path.join(directory, 'postgres'), { recursive: true });
        writeFileSync(path.join(directory, 'secrets.json'), '{}');
      },
    ],
  ] as const) {
    it(`a data directory with ${what} is refused unchanged, and the error says how to restore a backup`, async () => {
      damage();
      const found = readdirSync(directory, { recursive: true }).length;
      const { code, message } = await refusal();
      expect(code).to.equal('data_directory_damaged');
      expect(message).to.contain(directory).and.contain('put a backup of the whole directory');
      expect(message).not.to.match(/\n|Abort|wasm/i);
      expect(readdirSync(directory, { recursive: true }).length).to.be.within(found, found + 2);
    });
  }

  it('the error does not call a data directory damaged that another version of PostgreSQL wrote', async () => {
    writeFileSync(path.join(directory, 'postgres/PG_VERSION'), '15\n');
    expect((await refusal()).code).to.equal('data_directory_of_another_version');
  });

  it('the service expects the PostgreSQL version that new data directories have', () => {
    const version = readFileSync(path.join(directory, 'postgres/PG_VERSION'), 'utf8');
    expect(version).to.equal(`${POSTGRES_VERSION}\n`);
  });

  it('a data directory that other users may enter is refused', async () => {
    chmodSync(directory, 0o755);
    expect((await refusal()).message).to.contain(`chmod 700 ${directory}`);
  });

  it('a data directory is not opened if every user could write the files that the process creates', async () => {
    const umask = process.umask(0);
    try {
      expect((await refusal()).message).to.contain('umask 077');
    } finally {
      process.umask(umask);
    }
  });

  it('a database without its secrets is refused, and no keys are generated', () => {
    const load = () => loadSettings({ environment: { GATEHOUSE_DATA_DIR: directory } });
    expect(load).to.throw(/secrets\.json.*is missing, but its database exists/s);
    expect(readdirSync(directory)).to.deep.equal(['postgres']);
  });
});
