/** The memory that the embedded database needs. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { openDatabase } from '../../src/storage/database.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { startOtherProcess } from './other-process.ts';

/** With the optimizing compiler of V8 a process had more than 600 MiB. */
const MAX_MEMORY_MIB = 300;

describe('memory of the embedded database', () => {
  it('a start with a thousand statements needs less than 300 MiB', async () => {
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

  it('a database has 8 MB of shared buffers, even if its own settings file says 128 MB', async () => {
    const dataDirectory = await freshDataDirectory();
    const file = path.join(dataDirectory, 'postgres/postgresql.conf');
    const settings = readFileSync(file, 'utf8');
    expect(settings).to.include('\nshared_buffers = 128MB');
    const database = await openDatabase({ dataDirectory, sharing: 'own' });
    const inForce = await database.query('SHOW shared_buffers');
    await database.close();
    expect(inForce).to.deep.equal([{ shared_buffers: '8MB' }]);
    expect(readFileSync(file, 'utf8'), 'as an earlier version wrote it').to.equal(settings);
  });
});
