/** Strangers who all sign in at once wait for each other, and nobody else waits for them. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { inTurn, type Rank, TooManyPasswords } from '../../src/accounts/password-work.ts';
import { clientCredentials, introspect } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { seed } from '../support/seed.ts';
import { startTestService } from '../support/service.ts';

describe('the work of comparing passwords', () => {
  /** Work that goes on until it is released, and notes when it began. */
  function held(name: string, rank: Rank, begun: string[]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = inTurn(async () => {
      begun.push(name);
      await promise;
    }, rank);
    return { done, release: resolve };
  }

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

describe('a flood of sign-ins', () => {
  it('does not keep clients waiting, and each of them is answered', async () => {
    const service = await startTestService({
      settings: { limits: { signInFailuresPerAddress: 1_000 } },
    });
    try {
      const { clients, person } = await seed(service);
      const { issuer } = service;
      const { body } = await clientCredentials(issuer, clients.machine);
      const token = String(body.access_token);
      const strangers = await Promise.all(
        Array.from({ length: 90 }, async (_, index) => {
          const browser = createPerson(issuer);
          return {
            browser,
            page: await browser.get('/login'),
            email: `nobody-${index}@example.test`,
          };
        }),
      );
      let answered = 0;
      const flood: Promise<Page>[] = strangers.map(async ({ browser, page, email }) => {
        const answer = await browser.submit(page, { email, password: 'seven red forklifts' });
        answered += 1;
        return answer;
      });
      // Clients are answered one after the other while the strangers still wait.
      const meanwhile: number[] = [];
      for (let asked = 0; asked < 20; asked += 1) {
        const { status, body: answer } = await introspect(issuer, clients.resourceServer, token);
        expect([status, answer.active]).to.deep.equal([200, true]);
        meanwhile.push(answered);
      }
      expect(meanwhile.at(-1)).to.be.below(strangers.length);

      const answers = await Promise.all(flood);
      const looked = answers.filter(({ status }) => status === 401);
      const busy = answers.filter(({ status }) => status === 503);
      expect(looked.length + busy.length).to.equal(strangers.length);
      expect(looked.length).to.be.at.least(64);
      for (const { headers, html } of busy) {
        expect(headers.get('retry-after')).to.equal('2');
        expect(html).to.include('Many people are signing in at this moment.');
      }
      expect(busy).to.have.length.above(0);
      expect((await createPerson(issuer).signIn(person)).status).to.equal(200);
    } finally {
      await service.close();
    }
  });
});
