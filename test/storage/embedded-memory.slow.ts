/** The memory that the embedded database needs. */
import { expect } from 'chai';
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
});
