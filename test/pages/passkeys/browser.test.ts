/** Passkeys in a real Chromium, with its WebAuthn API, our content policy and a virtual authenticator. */
import { expect } from 'chai';
import { expectAccessible, PHONE } from '../../support/axe.ts';
import { button, describeInBrowser, signInOn } from '../../support/browser.ts';
import { authorizationUrl, exchangeCode, pkce, type TestClient } from '../../support/oauth.ts';
import { type Partner, startPartner } from '../../support/partner.ts';
import { addTestClient } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { add, offerNothingWhileTyping, plugIn } from './chromium.ts';
import { SECURITY } from './soft-passkey.ts';

describeInBrowser('passkeys in Chromium', (visit) => {
  let partner: Partner;
  let client: TestClient;
  const on = startSeeded();

  before(async () => {
    partner = await startPartner();
    const redirectUris = [partner.redirectUri];
    client = await addTestClient(on.service, 'Warehouse Map', { kind: 'public', redirectUris });
  });

  it('a user adds a passkey and signs in with it for a client, which receives tokens', async () => {
    const { page, problems } = await visit(PHONE);
    const { touch, verify } = await plugIn(page);
    await offerNothingWhileTyping(page);
    await page.goto(`${on.issuer}${SECURITY}`);
    await expectAccessible(page);
    await signInOn(page, on.seeded.person);
    await touch(true);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await page.getByLabel('Name').waitFor();
    await expectAccessible(page);
    await page.goBack();
    await add(page, 'Work laptop');
    await page.getByText('Passkey added').waitFor();
    await expectAccessible(page);
    await add(page, 'The same');
    await page.getByText('You already have a passkey on this device.').first().waitFor();
    await touch(false);
    await page.goto(`${on.issuer}/logout`);
    await button(page, 'Sign out').last().click();

    const { verifier, parameters } = pkce();
    await page.goto(authorizationUrl(on.issuer, client, parameters).href);
    await verify(false);
    await touch(true);
    await button(page, 'Sign in with a passkey').click();
    await page.getByText('No passkey was used.').first().waitFor();
    await verify(true);
    await button(page, 'Sign in with a passkey').click();
    await button(page, 'Approve').waitFor();
    expect(problems).to.deep.equal([]);
    await button(page, 'Approve').click();
    const answer = await partner.nextRedirect();
    const code = answer.searchParams.get('code') ?? '';
    const { status } = await exchangeCode(on.issuer, client, code, { code_verifier: verifier });
    expect(status).to.equal(200);
  });
});
