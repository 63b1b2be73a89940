/** Rules of the cache of an API that need the exact time of an answer and of a change. */
import { expect } from 'chai';
import type { CallerFields } from '../src/caller.ts';
import { createRememberedCallers } from '../src/remembered-callers.ts';

const MAX_AGE_MS = 600_000;

describe('the cache of callers', () => {
  let now: number;
  let callers: ReturnType<typeof createRememberedCallers>;
  const { random } = Math;

  beforeEach(() => {
    now = 1_000_000;
    callers = createRememberedCallers({ maxSize: 100, maxAgeMs: MAX_AGE_MS, clock: () => now });
    now += 5_000;
  });
  afterEach(() => {
    Math.random = random;
  });

  /** Caches an answer that was requested just now. */
  function keep(token: string, organizations: CallerFields['organizations'] = []) {
    const subject = `acc_${token}`;
    const fields = { method: 'api_key', subject, accountId: subject, organizations } as const;
    return callers.keep(token, fields, callers.now());
  }

  it('after everything has changed, an id that only the former answer named evicts no caller', () => {
    const former = keep('ada', [{ id: 'org_a', name: 'A', role: 'owner', warehouses: [] }]);
    const ended = former.signal;
    callers.change('everything');
    expect([ended?.aborted, callers.find('ada')]).to.deep.equal([true, undefined]);
    now += 5_000;
    const next = keep('ada');
    callers.change('org_a');
    expect(callers.find('ada')).to.equal(next);
    expect(next.signal?.aborted).to.equal(false);
  });

  it('for five seconds after everything has changed no answer is cached, whichever id changed before and since', () => {
    callers.change('acc_bob');
    now += 3_000;
    callers.change('everything');
    // The change of the first id is forgotten now.
    now += 3_000;
    callers.change('acc_carl');
    keep('ada');
    expect(callers.find('ada')).to.equal(undefined);
    now += 2_000;
    const caller = keep('ada');
    expect(callers.find('ada')).to.equal(caller);
  });

  it('a caller in use is introspected again after a random part of its ten minutes, from 40 % to 90 %', () => {
    for (const [drawn, dueMs] of [
      [0, 540_000],
      [0.5, 390_000],
      [1, 240_000],
    ] as const) {
      Math.random = () => drawn;
      const token = `ada${drawn}`;
      keep(token);
      now += 1;
      callers.find(token);
      now += dueMs - 2;
      expect(callers.takeDue(MAX_AGE_MS), `${drawn}`).to.deep.equal([]);
      now += 1;
      expect(callers.takeDue(MAX_AGE_MS), `${drawn}`).to.deep.equal([token]);
      callers.drop(token);
    }
  });

  it('an answer that has not changed draws the time of the next introspection again', () => {
    Math.random = () => 0;
    const caller = keep('ada');
    Math.random = () => 1;
    now += 100_000;
    expect(keep('ada')).to.equal(caller);
    now += 1;
    callers.find('ada');
    now += 239_998;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal([]);
    now += 1;
    expect(callers.takeDue(MAX_AGE_MS)).to.deep.equal(['ada']);
  });
});
