/** Approve and Deny in parallel, in every order: the saved decision is the one that the client received. */
import { expect } from 'chai';
import { authorizationUrl } from '../support/oauth.ts';
import type { Page } from '../support/person.ts';
import { repeated } from '../support/repetitions.ts';
import { answerIn } from './authorization-outcome.ts';
import { forEachRace, offset } from './racing.ts';

/** Each order once. */
const ROUNDS = repeated(24);

forEachRace('one interaction takes one decision', (open) => {
  it('the client receives only one decision of a parallel Approve and Deny, and that one is saved', async () => {
    const { service, seeded, partner } = await open(60);
    const { browser } = partner;
    const { confidential } = seeded.clients;
    const whose = { accountId: seeded.person.accountId, clientId: confidential.id };
    await browser.signIn(seeded.person);
    for (let round = 0; round < ROUNDS; round += 1) {
      const request = authorizationUrl(service.issuer, confidential);
      const consent = await browser.open(request);
      const decide = (decision: string) => async (): Promise<Page> =>
        browser.follow(await browser.submit(consent, { decision }));
      const pages = await offset(round, decide('approve'), decide('deny'));

      const answers = pages.filter(({ location }) => location).map(answerIn);
      expect(answers, `round ${round}`).to.have.length(1);
      const isConnected = (await service.connections.find(whose.accountId, whose.clientId)) !== undefined;
      expect(isConnected, `round ${round}`).to.equal(answers[0]?.error === undefined);
      await service.connections.end(whose, 'person_disconnected');
    }
  });
});
