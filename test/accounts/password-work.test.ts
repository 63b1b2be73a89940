/** Strangers who all sign in at once wait for each other, and nobody else waits for them. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { inTurn, type Rank, TooManyPasswords } from '../../src/accounts/password-work.ts';
import { clientCredentials } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

/** Work that goes on until it is released, and notes when it began. */
function held(name: string, rank: Rank, begun: string[]) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = inTurn(async () => {
    begun.push(name);
    await promise;
  }, rank);
  return { done, release: resolve };
}

describe('the work of comparing passwords', () => {
  it('is done by few at once; who is known goes first, and strangers beyond a number are sent away', async () => {
    const begun: string[] = [];
    const strangers = Array.from({ length: 200 }, (_, index) =>
      held(`stranger ${index}`, 'stranger', begun),
    );
    const outcomes = strangers.map(({ done }) =>
      done.then(
        () => 'done',
        (error: unknown) => (error instanceof TooManyPasswords ? 'sent away' : 'failed'),
      ),
    );
    await delay(0);
    const atOnce = begun.length;
    expect(atOnce).to.be.within(1, 3);
    const known = held('known', 'known', begun);
    strangers[0]?.release();
    await delay(0);
    expect(begun[atOnce]).to.equal('known');
    known.release();
    for (const { release } of strangers) release();
    const seen = await Promise.all([...outcomes, known.done]);
    expect(seen.filter((outcome) => outcome === 'done')).to.have.length(64 + atOnce);
    expect(seen.filter((outcome) => outcome === 'sent away')).to.have.length(200 - 64 - atOnce);
    // In the order in which they came.
    expect(begun.filter((name) => name !== 'known')).to.deep.equal(
      Array.from({ length: 64 + atOnce }, (_, index) => `stranger ${index}`),
    );
  });

  it('gives its turn on where it fails', async () => {
    const failing = Array.from({ length: 5 }, () =>
      inTurn(() => Promise.reject(new Error('no')), 'stranger').catch(() => 'failed'),
    );
    expect(await Promise.all(failing)).to.deep.equal(Array(5).fill('failed'));
    expect(await inTurn(async () => 'done', 'stranger')).to.equal('done');
  });
});

describe('a sign-in while many are being compared', () => {
  const on = startSeeded();

  it('is told to come back soon, and clients do not wait', async () => {
    const strangers = Array.from({ length: 70 }, (_, index) => held(`${index}`, 'stranger', []));
    const outcomes = strangers.map(({ done }) => done.catch(() => 'sent away'));
    try {
      const browser = createPerson(on.issuer);
      const fields = { email: 'nobody@example.test', password: 'seven red forklifts' };
      const answer = await browser.submit(await browser.get('/login'), fields);
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('retry-after')).to.equal('2');
      expect(answer.html).to.include('Many people are signing in at this moment.');
      expect((await clientCredentials(on.issuer, on.clients.machine)).status).to.equal(200);
    } finally {
      for (const { release } of strangers) release();
      await Promise.all(outcomes);
    }
    expect((await createPerson(on.issuer).signIn(on.seeded.person)).status).to.equal(200);
  });
});
