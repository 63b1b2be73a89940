/** The readiness check is answered in time, even if a store does not answer. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createReadiness, type Probe } from '../../src/host/readiness.ts';

const NOW = 1_900_000_000_000;

const readinessOf = (probes: { database: Probe; tokens?: Probe }) =>
  createReadiness({ probes, clock: () => NOW, timeShift: () => 0, onAnswer: () => {} });

describe('readiness', () => {
  it('if one store does not answer within 2 seconds, readiness reports only this store as unavailable', async () => {
    const readiness = readinessOf({
      database: () => new Promise<never>(() => {}),
      tokens: async () => NOW + 7,
    });
    // Compare with a timer: of two expired timers the earlier one fires first, even on a busy machine.
    const tooLate = delay(2_000, 'too late');
    expect(await Promise.race([readiness.stores(), tooLate])).to.deep.equal({
      database: { isAway: true, reason: 'no answer' },
      tokens: { isAway: false, clockAheadMs: 7 },
    });
  });

  it('all readiness requests within a second share one check of the stores', async () => {
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
