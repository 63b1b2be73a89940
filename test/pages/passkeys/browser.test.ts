/** Passkeys in a real Chromium, with its WebAuthn API, our content policy and a virtual authenticator. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, PHONE } from '../../support/axe.ts';
import { describeInBrowser } from '../../support/browser.ts';
import { atEndOfFile } from '../../support/end-of-run.ts';
import { authorizationUrl, exchangeCode, pkce, type TestClient } from '../../support/oauth.ts';
import { type Partner, startPartner } from '../../support/partner.ts';
import { type Credentials, createPerson } from '../../support/person.ts';
import { addPerson, passwordLink } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said } from '../client-owner.ts';
import { NEW, SECURITY } from './soft-passkey.ts';

/**
 * Adds a virtual authenticator. @returns controls of the authenticator: its touch, and whether it
 * verifies the user.
 */
async function plugIn(page: Page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('WebAuthn.enable');
  const options = {
    ...({ protocol: 'ctap2', transport: 'internal' } as const),
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: false,
  };
  const added = await debug.send('WebAuthn.addVirtualAuthenticator', { options });
  const { authenticatorId } = added;
  return {
    touch: (enabled: boolean) => debug.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    verify: (isUserVerified: boolean) => debug.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
  };
}

describeInBrowser('passkeys in Chromium', (visit) => {
  let partner: Partner;
  let client: TestClient;
  const on = startSeeded({ clock: true });

  before(async () => {
    partner = await startPartner();
    atEndOfFile(partner.close);
    const redirectUris = [partner.redirectUri];
    const draft = { kind: 'public', name: 'Warehouse Map', redirectUris, isNative: false } as const;
    const added = await on.service.clients.add(draft);
    client = { id: added.client.id, redirectUri: partner.redirectUri };
  });

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const security = () => `${on.issuer}${SECURITY}`;

  async function signIn(page: Page, { email, password }: Credentials): Promise<void> {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await button(page, 'Sign in').click();
  }

  /** Adds a passkey with this name. The page must be the security page of a signed-in user. */
  async function add(page: Page, name: string): Promise<void> {
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await page.getByLabel('Name').fill(name);
    await button(page, 'Create passkey').click();
  }

  it('a user adds a passkey and signs in with it for a client, which receives tokens', async () => {
    const { page, problems } = await visit(PHONE);
    const { touch, verify } = await plugIn(page);
    await page.goto(security());
    await expectAccessible(page);
    await signIn(page, on.seeded.person);
    await touch(true);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
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

  it('two users of one browser can sign in, each with their own passkey', async () => {
    const { page, problems } = await visit();
    const { touch } = await plugIn(page);
    for (const who of [on.seeded.person, on.seeded.other]) {
      await touch(false);
      await page.goto(security());
      await signIn(page, who);
      await touch(true);
      await add(page, `Of ${who.name}`);
      await page.getByText('Passkey added').waitFor();
      // The page requests the passkey of the signed-in user, not the other one in this browser.
      on.clock.advance(601);
      await page.goto(`${on.issuer}/profile/api-keys`);
      await page.fill('[name=name]', 'Night sync');
      await button(page, 'Create API key').click();
      await expectAccessible(page);
      await button(page, 'Confirm with a passkey').click();
      await page.locator('[data-secret]').waitFor();
      expect(await page.textContent('header')).to.include(who.email);
      await page.goto(`${on.issuer}/logout`);
      await button(page, 'Sign out').last().click();
      await page.getByText('You are signed out').first().waitFor();
    }
    await page.goto(`${on.issuer}/profile/connections`);
    await page.getByRole('heading', { name: 'Connections' }).waitFor();
    expect(problems).to.deep.equal([]);
  });

  it('an invited user is signed in by the password just set, and ends an earlier session on the second page of the list', async () => {
    const who = await addPerson(on.service, 'Ina Invited', 'ina@example.test');
    const { page, problems } = await visit(PHONE);
    await page.goto(`${on.issuer}${await passwordLink(on.service, who, 'invitation')}`);
    await expectAccessible(page);
    const password = 'eight blue pallets, stacked';
    await page.locator('[name=new_password]').fill(password);
    await button(page, 'Set password').click();
    await page.waitForURL(`${on.issuer}/profile`);
    const earlier = createPerson(on.issuer);
    await earlier.signIn({ ...who, password });
    on.clock.advance(1);
    for (let later = 0; later < 26; later += 1) await createPerson(on.issuer).signIn({ ...who, password });
    await page.goto(security());
    await page.locator('[rel=next]').click();
    await page.waitForURL(/sessions_from=25/);
    await expectAccessible(page);
    await page.locator('form[action*="/sessions/"] button').last().click();
    await page.getByText(said('security.signed-out-there')).first().waitFor();
    expect((await earlier.get('/profile')).location?.pathname).to.equal('/login');
    expect(problems).to.deep.equal([]);
  });

  it('passkeys are not offered without JavaScript, and the page to add a passkey says so', async () => {
    const { page } = await visit({ javaScript: false });
    await page.goto(security());
    await signIn(page, on.seeded.person);
    expect(await button(page, 'Sign in with a passkey').isVisible()).to.equal(false);
    await page.goto(`${on.issuer}${NEW}`);
    expect(await page.innerText('main')).to.include(said('passkey.cannot-create'));
  });
});

describeInBrowser('a user for whom a password is not enough', (visit) => {
  const on = startSeeded({
    settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: 0 } },
  });

  it("a user adds a passkey during a client's request and then reaches the consent page", async () => {
    const { page, problems } = await visit(PHONE);
    const { touch } = await plugIn(page);
    await touch(true);
    await page.goto(authorizationUrl(on.issuer, on.clients.otherConfidential).href);
    await page.getByLabel('Email address').fill(on.seeded.other.email);
    await page.getByLabel('Password', { exact: true }).fill(on.seeded.other.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'A password is not enough for you' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(problems).to.deep.equal([]);
  });
});
