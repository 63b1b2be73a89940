/** Whether a process can serve is answered in time, whatever its stores do. */
import { expect } from 'chai';
import { createReadiness } from '../../src/host/readiness.ts';
import { ticksOf } from '../support/stopwatch.ts';

describe('readiness', () => {
  it('a store that never answers is away within 2 seconds, and the other is not', async () => {
    const readiness = createReadiness({
      database: () => new Promise<never>(() => {}),
      tokens: async () => {},
    });
    const stores = readiness.stores();
    expect(await ticksOf(stores)).to.be.below(2_000);
    expect(await stores).to.deep.equal({
      database: { isAway: true, reason: 'no answer' },
      tokens: { isAway: false },
    });
  });
});
