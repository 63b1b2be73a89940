/** Sessions with requests in flight: an ended session stays ended, and no other session ends. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { repeated } from '../support/repetitions.ts';
import { forEachRace } from './racing.ts';

const ROUNDS = repeated(3);

forEachRace('sessions with requests in flight', (open) => {
  it('signing out is final, even during many requests with a copy of the cookie', async () => {
    const { service, seeded, issuer } = await open(60);
    const silent = authorizationUrl('http://any', seeded.clients.confidential, {
      prompt: 'none',
    });
    for (let round = 0; round < ROUNDS; round += 1) {
      const person = await signedIn(service, seeded.person);
      const cookie = person.cookieHeader('/');
      const copies = [0, 1].map((turn) => createPerson(issuer(turn)));
      let isPolling = true;
      const poll = async (ask: () => Promise<Page>): Promise<void> => {
        while (isPolling) expect((await ask()).status).to.be.below(500);
      };
      const polls = copies.flatMap((copy) => [
        poll(() => copy.get('/profile', { cookie })),
        poll(() => copy.get(`${silent.pathname}${silent.search}`, { cookie })),
        poll(() => copy.post('/oauth/token/refresh', {}, { cookie })),
      ]);
      const page = await person.get('/logout');
      const { status } = await person.submit(page, {});
      isPolling = false;
      await Promise.all(polls);

      expect(status).to.equal(303);
      const profile = await createPerson(service.issuer).get('/profile', { cookie });
      expect(profile.location?.pathname, `round ${round}`).to.equal('/login');
    }
  });

  for (const [step, fields] of [
    ['Approve', () => ({ decision: 'approve' })],
    ['Sign in', ({ email, password }: { email: string; password: string }) => ({ email, password })],
  ] as const) {
    it(`several parallel clicks on ${step} do not sign the user out`, async () => {
      const { service, seeded } = await open(60);
      const { confidential } = seeded.clients;
      const prompt = step === 'Approve' ? 'consent' : 'login';
      for (let round = 0; round < ROUNDS; round += 1) {
        const person = await signedIn(service, seeded.person);
        const request = authorizationUrl(service.issuer, confidential, { prompt });
        const asked = await person.open(request);
        const click = async (): Promise<Page> => person.follow(await person.submit(asked, fields(seeded.person)));
        const pages = await Promise.all([click(), click(), click(), click()]);
        for (const { status } of pages) expect(status).to.be.oneOf([200, 303, 410]);
        expect((await person.get('/profile')).status, `round ${round}`).to.equal(200);
      }
    });
  }
});
