/** Revocations during each fault; `npm run bench -- ends` measures more rounds. */
import { expect } from 'chai';
import { endsTable, measureEnds } from '../../bench/ends.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';

const ROUNDS = repeated(1);
/** How long an API may accept a revoked token from its cache, plus the time, at most as long, for which the process is stalled. */
const MAX_ACCEPTANCE_MS = 1_000;

describeOn([postgresServer, redisServer], 'an acknowledged revocation', () => {
  it('an acknowledged revocation is in force within a second, and stays so through every fault', async () => {
    const results = await measureEnds(ROUNDS);
    console.log(endsTable(results).replace(/^/gm, '      '));
    for (const { fault, answered, activeAgain, acceptanceMs, stalledMs } of results) {
      expect(answered, fault).to.be.above(0);
      expect(activeAgain, fault).to.equal(0);
      expect(Math.max(...acceptanceMs), fault).to.be.at.most(MAX_ACCEPTANCE_MS + stalledMs);
    }
  });
});
