/** Revocations during each fault; `npm run bench -- ends` measures more rounds. */
import { expect } from 'chai';
import { endsTable, measureEnds } from '../../bench/ends.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';

const ROUNDS = 2;

describeOn([postgresServer, redisServer], 'an acknowledged revocation', () => {
  it('an acknowledged revocation stays in force through every fault', async () => {
    const results = await measureEnds(ROUNDS);
    console.log(endsTable(results).replace(/^/gm, '      '));
    for (const { fault, answered, activeAgain } of results) {
      expect(answered, fault).to.be.above(0);
      expect(activeAgain, fault).to.equal(0);
    }
  });
});
