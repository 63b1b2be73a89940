/** What the pages of consent and of a connection say about a client, and whom to tell about it. */
import { expect } from 'chai';
import { authorizationUrl, pkce, type TestClient } from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

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
});
