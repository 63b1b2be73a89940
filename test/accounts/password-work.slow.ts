/** A flood of sign-ins that compare passwords at the real cost. */
import { expect } from 'chai';
import { clientCredentials, introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

describe('a flood of sign-ins', () => {
  const on = startSeeded({ settings: { limits: { signInFailuresPerAddress: 1_000 } } });

  it('a flood of sign-ins does not delay clients, and every attempt is answered', async () => {
    const { issuer, clients, seeded } = on;
    const { body } = await clientCredentials(issuer, clients.machine);
    const token = String(body.access_token);
    const browsers = await Promise.all(
      Array.from({ length: 150 }, async (_, index) => {
        const browser = createPerson(issuer);
        const page = await browser.get('/login');
        return { browser, page, email: `nobody-${index}@example.test` };
      }),
    );
    let answered = 0;
    const flood = browsers.map(async ({ browser, page, email }) => {
      const answer = await browser.submit(page, { email, password: 'seven red forklifts' });
      answered += 1;
      return answer;
    });
    // Introspection answers, one request after another, while sign-ins still wait.
    let asked = 0;
    for (; answered < browsers.length; asked += 1) {
      const answer = await introspect(issuer, clients.resourceServer, token);
      expect(answer.body.active, answer.text).to.equal(true);
    }
    expect(asked).to.be.above(3);

    const answers = await Promise.all(flood);
    const compared = answers.filter(({ status }) => status === 401);
    // All attempts come from one address, and only a limited number of its comparisons may wait.
    const busy = answers.filter(({ status }) => status === 429);
    expect(compared.length + busy.length).to.equal(browsers.length);
    expect(compared.length).to.be.at.least(24);
    expect(busy).to.have.length.above(0);
    for (const { headers } of busy) expect(headers.get('retry-after')).to.equal('5');
    expect((await createPerson(issuer).signIn(seeded.person)).status).to.equal(200);
  });
});
