/** The memory of the embedded database, and its lock, which does not depend on files that a cleaning program may remove. */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { type OtherProcess, startOtherProcess } from './other-process.ts';

const IDS = 'SELECT id FROM organizations ORDER BY created_at, id';
const insert = (id: string) => `INSERT INTO organizations (id, name, created_at) VALUES ('${id}', '', '2030-01-01')`;

describe('embedded PostgreSQL, whose socket or lock file is removed while it runs', () => {
  let directory: string;
  let owner: OtherProcess;

  beforeEach('an owner that recovers what a killed one left', async () => {
    directory = await freshDataDirectory();
    await (await startOtherProcess(directory, 'own')).kill();
    // While PostgreSQL recovers, it may open any file of its folder; that must not free the lock.
    owner = await startOtherProcess(directory, 'own');
    expect(owner.outcome).to.equal('opened');
  });
  afterEach(() => owner.kill());

  const removeWhere = async (isRemoved: (name: string) => boolean): Promise<void> => {
    for (const name of await readdir(directory)) {
      if (isRemoved(name)) await rm(path.join(directory, name));
    }
  };

  const outcomeOf = async (sharing: 'own' | 'share'): Promise<string> => {
    const other = await startOtherProcess(directory, sharing);
    await other.kill();
    return other.outcome;
  };

  it('if the sockets of a database are gone, no second process can open it until the first process is killed', async () => {
    await owner.query(insert('of the owner'));
    await removeWhere((name) => name.startsWith('.'));
    for (const sharing of ['own', 'share'] as const) {
      expect(await outcomeOf(sharing), sharing).to.equal('data_directory_in_use');
    }
    await owner.kill();
    const next = await startOtherProcess(directory, 'own');
    expect(await next.query(IDS)).to.deep.equal([{ id: 'of the owner' }]);
    await next.close();
  });

  it('without the lock file another process is still refused, and a command can still share the database', async () => {
    await removeWhere((name) => name.endsWith('.lock'));
    expect(await outcomeOf('own')).to.equal('data_directory_in_use');
    const command = await startOtherProcess(directory, 'share');
    expect(await command.query(IDS)).to.deep.equal([]);
    await command.close();
  });
});

/** With the optimizing compiler of V8 a process had more than 600 MiB. */
const MAX_MEMORY_MIB = 300;

describe('memory of the embedded database', () => {
  it('starting the database and planning a thousand SQL statements needs less than 300 MiB of memory', async () => {
    const owner = await startOtherProcess(await freshDataDirectory(), 'own');
    // EXECUTE plans each statement again, so PostgreSQL's largest functions run often.
    const statement = `DO $$ BEGIN FOR i IN 1..1000 LOOP
      EXECUTE 'SELECT count(*) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relname = ' || quote_literal(i);
    END LOOP; END $$`;
    const answer = await owner.query(statement);
    const peak = await owner.peakMemoryMiB();
    await owner.close();
    expect(answer).to.deep.equal([]);
    expect(peak).to.be.below(MAX_MEMORY_MIB);
  });
});
