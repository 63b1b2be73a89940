/** Whether a process can serve is answered in time, whatever its stores do. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createReadiness } from '../../src/host/readiness.ts';

describe('readiness', () => {
  it('a store that never answers is away within 2 seconds, and the other is not', async () => {
    const readiness = createReadiness({
      database: () => new Promise<never>(() => {}),
      tokens: async () => {},
    });
    // Of timers that are both over the earlier one is heard of first, on a busy machine too.
    const tooLate = delay(2_000, 'too late');
    expect(await Promise.race([readiness.stores(), tooLate])).to.deep.equal({
      database: { isAway: true, reason: 'no answer' },
      tokens: { isAway: false },
    });
  });
});
