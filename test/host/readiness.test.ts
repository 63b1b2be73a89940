/** Whether a process can serve is answered in time, whatever its stores do. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createReadiness, type Probe } from '../../src/host/readiness.ts';

const NOW = 1_900_000_000_000;

const readinessOf = (probes: { database: Probe; tokens?: Probe }) =>
  createReadiness({ probes, clock: () => NOW, timeShift: () => 0, onAnswer: () => {} });

describe('readiness', () => {
  it('a store that never answers is away within 2 seconds, and the other is not', async () => {
    const readiness = readinessOf({
      database: () => new Promise<never>(() => {}),
      tokens: async () => NOW + 7,
    });
    // Of timers that are both over the earlier one is heard of first, on a busy machine too.
    const tooLate = delay(2_000, 'too late');
    expect(await Promise.race([readiness.stores(), tooLate])).to.deep.equal({
      database: { isAway: true, reason: 'no answer' },
      tokens: { isAway: false, clockAheadMs: 7 },
    });
  });

  it('several who ask within a second get one answer, which the stores gave once', async () => {
    let asked = 0;
    const readiness = readinessOf({
      database: async () => {
        asked += 1;
        return NOW;
      },
    });
    const answers = await Promise.all([readiness.stores(), readiness.stores()]);
    expect(answers).to.deep.include(await readiness.stores());
    expect(asked).to.equal(1);
  });
});
