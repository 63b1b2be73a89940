/** A damaged data directory is refused with an explanation. `damaged-data.slow.ts` has what only PGlite finds damaged. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadSettings } from '../../src/config/load.ts';
import { POSTGRES_VERSION } from '../../src/storage/embedded/failed-open.ts';
import { ownDataDirectory } from './damaged-data.ts';

describe('a data directory is opened only if it is safe and of the right version', () => {
  const on = ownDataDirectory();

  on.refuses({
    'a database that lacks its PG_VERSION': () => rmSync(path.join(on.directory, 'postgres/PG_VERSION')),
    'secrets but no database': () => {
      rmSync(path.join(on.directory, 'postgres'), { recursive: true });
      writeFileSync(path.join(on.directory, 'secrets.json'), '{}');
    },
  });

  it('a data directory of another PostgreSQL version is refused for that reason, and not as damaged', async () => {
    writeFileSync(path.join(on.directory, 'postgres/PG_VERSION'), '15\n');
    expect((await on.refusal()).code).to.equal('data_directory_of_another_version');
  });

  it('the service expects the PostgreSQL version that new data directories have', () => {
    const version = readFileSync(path.join(on.directory, 'postgres/PG_VERSION'), 'utf8');
    expect(version).to.equal(`${POSTGRES_VERSION}\n`);
  });

  it('a data directory that other users may enter is refused', async () => {
    chmodSync(on.directory, 0o755);
    expect((await on.refusal()).message).to.contain(`chmod 700 ${on.directory}`);
  });

  it('a data directory is not opened if every user could write the files that the process creates', async () => {
    const umask = process.umask(0);
    try {
      expect((await on.refusal()).message).to.contain('umask 077');
    } finally {
      process.umask(umask);
    }
  });

  it('a database without its secrets is refused, and no keys are generated', () => {
    const load = () => loadSettings({ environment: { GATEHOUSE_DATA_DIR: on.directory } });
    expect(load).to.throw(/secrets\.json.*is missing, but its database exists/s);
    expect(readdirSync(on.directory)).to.deep.equal(['postgres']);
  });
});
