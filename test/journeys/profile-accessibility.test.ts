/** Every page of the profile and of passwords: for people who see it dark, small, or not at all. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { violationsOn } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { authorizationUrl, exchangeCode } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, REDIRECT_URI, type SeededPerson, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';

const LONG = 'Ünbroken'.repeat(8);

describeInBrowser('the pages of a person', (visit) => {
  let service: TestService;
  let person: SeededPerson;
  let clientId: string;
  let linkPath: string;

  before(async () => {
    const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gate@example.test' };
    service = await startTestService({ settings: { mail } });
    await seed(service);
    person = await addPerson(service, LONG, 'long@example.test');
    const { client, secret = '' } = await service.clients.add({
      ...{ kind: 'confidential', name: LONG, isNative: false, redirectUris: [REDIRECT_URI] },
      ownerAccountId: person.accountId,
    });
    clientId = client.id;
    const { accountId } = person;
    const organization = await service.organizations.add({ name: LONG });
    const partner = { id: client.id, secret, redirectUri: REDIRECT_URI };
    const url = authorizationUrl(service.issuer, partner);
    const answer = await createPerson(service.issuer).authorize(url, person);
    await exchangeCode(service.issuer, partner, answer.searchParams.get('code') ?? '');
    await service.memberships.setRole({ accountId }, organization.id, 'owner');
    const origin = { address: '2001:db8::1', browser: `${'x'.repeat(40)}/1` };
    await service.apiKeys.add({ accountId, name: LONG, expiresInDays: undefined }, origin);
    const account = await service.accounts.find(accountId);
    if (!account) throw new Error('no such account');
    const { token } = await service.passwordLinks.make(account, 'forgotten', origin);
    linkPath = `/password?token=${token}`;
  });
  after(() => service.close());

  async function expectFit(page: Page): Promise<void> {
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect(await page.evaluate(overflow), page.url()).to.equal(0);
    expect(await violationsOn(page), page.url()).to.deep.equal([]);
  }

  async function signIn(page: Page): Promise<void> {
    await page.goto(`${service.issuer}/profile`);
    await page.getByLabel('Email address').fill(person.email);
    await page.getByLabel('Password', { exact: true }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Your profile' }).waitFor();
  }

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`axe finds nothing on any of them and none is wider than a phone, ${colorScheme}`, async () => {
      const { page } = await visit({ colorScheme, viewport: { width: 320, height: 640 } });
      const open = (path: string) => page.goto(service.issuer + path);
      for (const path of [
        linkPath,
        '/password',
        '/forgot-password',
        '/forgot-password?done=sent',
      ]) {
        await open(path);
        await expectFit(page);
      }
      await signIn(page);
      const connection = `/profile/connections/${clientId}`;
      const paths = [
        ...['/profile', '/profile/connections', connection, `${connection}/disconnect`],
        ...['/profile/connections/disconnect-all', '/profile/connections?done=disconnected'],
        ...['/profile/api-keys', '/profile/api-keys/created', '/profile/activity'],
        ...['/profile/activity?before=1', '/profile/security?done=password-changed'],
      ];
      for (const path of paths) {
        await open(path);
        await expectFit(page);
      }

      await open('/profile/api-keys');
      await page.getByLabel('Name').fill('x'.repeat(101));
      await page.getByRole('button', { name: 'Create API key' }).click();
      await page.getByRole('alert').waitFor();
      await expectFit(page);
      await page.getByLabel('Name').fill(LONG);
      await page.getByRole('button', { name: 'Create API key' }).click();
      await page.getByRole('heading', { name: 'Your new API key' }).waitFor();
      await expectFit(page);
      await open('/profile/api-keys');
      await page
        .getByRole('link', { name: `Revoke ${LONG}` })
        .first()
        .click();
      await page.getByRole('button', { name: 'Revoke' }).waitFor();
      await expectFit(page);

      await open('/profile/security');
      await page.getByLabel('Current password').fill(person.password);
      await page.getByLabel('New password').fill('short');
      await page.getByRole('button', { name: 'Change password' }).click();
      await page.getByRole('alert').waitFor();
      await expectFit(page);
    });
  }

  it('what is wrong leads to its field, and each field says what is wrong with it', async () => {
    const { page } = await visit();
    await signIn(page);
    await page.goto(`${service.issuer}/profile/api-keys`);
    await page.getByLabel('Name').fill('x'.repeat(101));
    await page.getByRole('button', { name: 'Create API key' }).click();
    const link = page.getByRole('alert').getByRole('link');
    await link.click();
    const field = page.getByLabel('Name');
    expect(await field.evaluate('document.activeElement.id')).to.equal('name');
    expect(await field.getAttribute('aria-invalid')).to.equal('true');
    const described = (await field.getAttribute('aria-describedby')) ?? '';
    const texts = described.split(' ').map((id) => page.locator(`#${id}`).textContent());
    expect((await Promise.all(texts)).join(' ')).to.include('Give the key a name');
    expect(await page.title()).to.match(/^Error: /);
  });
});
