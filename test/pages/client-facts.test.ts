/** What the pages of consent and of a connection say about a client, and whom to tell about it. */
import { expect } from 'chai';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { authorizationUrl, pkce, type TestClient } from '../support/oauth.ts';
import { addPerson, addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const DAY_MS = 86_400_000;
const SUPPORT = 'https://www.acme.example/help';

describe('the facts about a client', () => {
  let found: Overrides = {};
  const on = startSeeded({ clock: true, reloaded: () => found });
  let person: SignedInPerson;
  let client: TestClient;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
    const owner = { ownerAccountId: on.seeded.other.accountId };
    client = await addTestClient(on.service, 'Free Maps', owner);
  });

  const consentText = async (of = client): Promise<string> => {
    const request = authorizationUrl(on.issuer, of, pkce().parameters);
    return textOf((await person.open(new URL(`${request}&prompt=consent`))).html);
  };

  it('the pages of consent and of a connection lead to the operator if something is wrong with the app', async () => {
    const app = await addTestClient(on.service, 'Parcel Maps');
    const request = authorizationUrl(on.issuer, app, pkce().parameters);
    const consent = await person.open(request);
    const plain = 'Something wrong with this app? Tell the operator of this service';
    expect(textOf(consent.html)).to.include(plain);
    await person.follow(await person.submit(consent, { decision: 'approve' }));
    const path = `/profile/connections/${app.id}`;
    expect(textOf((await person.get(path)).html)).to.include(plain);
    found = { brand: { support: SUPPORT } };
    await on.service.reload();
    const link =
      `Something wrong with this app? <a href="${SUPPORT}" target="_blank" ` +
      'rel="noopener noreferrer"><bdi>Tell the operator of this service</bdi></a>';
    const again = await person.open(new URL(`${request}&prompt=consent`));
    for (const { html } of [again, await person.get(path)]) expect(html).to.include(link);
    found = {};
    await on.service.reload();
  });

  it('the consent page warns of a new client, but not of a client of the operator', async () => {
    expect(await consentText()).to.include(
      'Do you know this app? Approve it only if you expected it to ask you. ' +
        'Registered today · connected by no one yet · not checked by the operator',
    );
    const provided = await consentText(on.clients.otherConfidential);
    expect(provided).to.include('Registered today · connected by no one yet');
    expect(provided).to.not.include('Do you know').and.not.include('checked by');
  });

  it('the consent page shows facts but no warning for a client that is a week old and has five users', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const one = await addPerson(on.service, name, `${name}@example.test`);
      const subject = { accountId: one.accountId };
      if (name === 'a') {
        await on.service.memberships.setRole(subject, on.seeded.organization.id, 'viewer');
      }
      await partnerTokens(on.issuer, { ...on.seeded, person: one }).code(client);
    }
    const line = 'connected by 5 people, some in your organization · not checked by the operator';
    expect(await consentText())
      .to.include(said('standing.known'))
      .and.include(line);
    on.clock.advance((7 * DAY_MS) / 1_000);
    person = await signedIn(on.service, on.seeded.person);
    const text = await consentText();
    expect(text).to.include(`Registered 7 days ago · ${line}`).and.not.include('Do you know');
    expect(text).to.not.match(/\b[a-e]@example\.test/);
  });
});
