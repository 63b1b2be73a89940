/** Every kind of page is accessible in dark mode and on a phone, with names of the maximum length. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import * as axe from '../support/axe.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import { authorizationUrl, exchangeCode, pkce, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { createPerson, type Person } from '../support/person.ts';
import { PSEUDO, pseudoLanguage } from '../support/pseudo-language.ts';
import { addPerson, addTestClient, passwordLink, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const LONG = 'Ünbroken'.repeat(8);
const HOSTILE = `<img src=x onerror=alert(1)>"'><script>alert(1)</script>`;

describeInBrowser('pages in the browser', (visit) => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gate@example.test' };
  const on = startSeeded({ settings: { mail } });
  let partner: Partner;
  /** A user whose names have the maximum length and who has data on every page. */
  let person: SeededPerson;
  let client: TestClient;
  let session: Person;
  let organizationUrl: string;

  before(async () => {
    partner = await startPartner();
    const { service, issuer } = on;
    person = await addPerson(service, LONG, `${'x'.repeat(60)}@example.test`);
    const { accountId } = person;
    client = await addClient(LONG, accountId);
    session = createPerson(issuer);
    const answer = await session.authorize(authorizationUrl(issuer, client), person);
    await exchangeCode(issuer, client, answer.searchParams.get('code') ?? '');
    const organization = await service.organizations.add({ name: LONG });
    await service.memberships.setRole({ accountId }, organization.id, 'owner');
    organizationUrl = `/profile/organizations/${organization.id}`;
    await service.apiKeys.add({ accountId, name: LONG, expiresInDays: undefined }, ORIGIN);
    await service.clients.addSecret(client.id);
    // Cause a problem, so that the client's page shows one.
    await fetch(authorizationUrl(issuer, { ...client, redirectUri: 'https://app.example/cb/' }));
  });

  const ORIGIN = { address: '2001:db8::1', browser: `${'x'.repeat(40)}/1` };

  function addClient(name: string, ownerAccountId?: string): Promise<TestClient> {
    const others = ['http://app.example/cb', `https://app.example/${'x'.repeat(300)}`];
    const redirectUris = [partner.redirectUri, ...others];
    const owner = ownerAccountId !== undefined && { ownerAccountId };
    return addTestClient(on.service, name, { redirectUris, ...owner });
  }

  const requestUrl = (of: TestClient): string =>
    authorizationUrl(on.issuer, of, { ...pkce().parameters, prompt: 'consent' }).href;
  const press = (page: Page, name: string): Promise<void> =>
    page.getByRole('main').getByRole('button', { name }).first().click();

  /** Kinds of elements whose dark colors were looked at, by their tags and classes. */
  const seenInDark = new Set<string>();

  async function expectAccessible(page: Page, name = page.url()): Promise<void> {
    const found = await page.evaluate<string[]>(
      '[...document.querySelectorAll("body *")].map(({ tagName, className }) => tagName + " " + className)',
    );
    const dark = found.some((kind) => !seenInDark.has(kind));
    for (const kind of found) seenInDark.add(kind);
    await axe.expectAccessible(page, name, { dark });
  }

  async function expectPage(page: Page, name: string): Promise<void> {
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await expectAccessible(page, name);
  }

  async function expectPages(page: Page, paths: Readonly<Record<string, number>>): Promise<void> {
    for (const [path, status] of Object.entries(paths)) {
      const response = await page.goto(on.issuer + path);
      expect(response?.status(), path).to.equal(status);
      await expectAccessible(page, path);
    }
  }

  describe('all pages are accessible and fit on a phone', () => {
    it('the public pages are accessible and fit on a phone', async () => {
      const { page } = await visit(axe.PHONE);
      await expectPages(page, {
        '/login': 200,
        '/password': 410,
        [await passwordLink(on.service, person)]: 200,
        '/forgot-password': 200,
        '/errors': 200,
        '/errors/temporarily_unavailable': 200,
        '/oauth/authorize?client_id=nobody': 400,
      });
      await page.goto(`${on.issuer}/forgot-password`);
      await page.getByLabel('Email address').fill('nobody@example.test');
      await press(page, 'Send the link');
      await expectPage(page, 'Check your email');
    });

    // `pages.test.ts` looks at those before.
    it('the pages after an approval and for signing out are accessible and fit on a phone', async () => {
      const { page } = await visit(axe.PHONE);
      const own = createPerson(on.issuer);
      await own.signIn(person);
      await enterAs(page, on.issuer, own);
      await page.goto(requestUrl(client));
      await press(page, 'Approve');
      await page.waitForURL(`${partner.origin}/**`);
      await page.goBack();
      await expectPage(page, 'This request is no longer open');
      await page.goto(`${on.issuer}/logout`);
      await expectPage(page, 'Sign out?');
      await press(page, 'Sign out');
      await expectPage(page, 'You are signed out');
    });

    it('the pages of an organization that requires approval are accessible, fit on a phone, and need no JavaScript', async () => {
      const { page } = await visit(axe.PHONE);
      const { page: plain } = await visit({ javaScript: false });
      await enterAs(page, on.issuer, session);
      await enterAs(plain, on.issuer, session);
      const decision = `${organizationUrl}/clients/${client.id}`;
      await expectPages(page, { [`${organizationUrl}/policy`]: 200 });
      await plain.goto(`${on.issuer}${organizationUrl}/policy`);
      await plain.getByLabel('Require approval').check();
      await plain.getByLabel(LONG).uncheck();
      await plain.getByLabel('API keys have no access here').check();
      await press(plain, 'Save');
      await plain.getByText('No app is waiting.').waitFor({ state: 'detached' });
      const [key] = await on.service.apiKeys.listOf(person.accountId);
      const paths = {
        [organizationUrl]: 200,
        [decision]: 200,
        [`/profile/connections/${client.id}`]: 200,
        [`/profile/api-keys/${key?.id}/limit`]: 200,
      };
      await expectPages(page, paths);
      await plain.getByRole('link', { name: `Decide ${LONG}` }).click();
      await plain.getByLabel('Reason, if you decline the app').fill(HOSTILE);
      await press(plain, 'Decline');
      await plain.getByText('is declined').waitFor();
      await expectPages(page, { [organizationUrl]: 200 });
      await page.goto(requestUrl(client));
      await page.getByText(HOSTILE).waitFor();
      await expectAccessible(page);
      await plain.goto(`${on.issuer}${organizationUrl}/policy`);
      await plain.getByLabel('Open:').check();
      await plain.getByLabel('API keys can access what their owner can access').check();
      await press(plain, 'Save');
      await plain.getByText('Saved').waitFor();
    });

    it('the page of an organization, filtered by warehouse, is accessible, fits on a phone, and needs no JavaScript', async () => {
      const { organizations, access } = on.service;
      const organizationId = organizationUrl.split('/').at(-1) ?? '';
      for (const name of [LONG, `2 ${LONG}`, 'x'.repeat(60), 'Riga']) {
        await organizations.addWarehouse({ organizationId, name });
      }
      access.forgetOrganization(organizationId);
      const { page } = await visit(axe.PHONE);
      const { page: plain } = await visit({ javaScript: false });
      await enterAs(page, on.issuer, session);
      await enterAs(plain, on.issuer, session);
      await plain.goto(on.issuer + organizationUrl);
      await plain.getByRole('link', { name: 'Riga', exact: true }).click();
      await plain.locator('.parts [aria-current=page]', { hasText: 'Riga' }).waitFor();
      const { pathname, search } = new URL(plain.url());
      await expectPages(page, { [pathname + search]: 200 });
    });

    it('the profile pages are accessible and fit on a phone', async () => {
      const { page } = await visit(axe.PHONE);
      await enterAs(page, on.issuer, session);
      const connection = `/profile/connections/${client.id}`;
      await expectPages(page, {
        '/profile': 200,
        [connection]: 200,
        [`${connection}/disconnect`]: 200,
        '/profile/api-keys/created': 200,
        [`/profile/oauth-clients/${client.id}/links`]: 200,
        '/profile/organizations': 200,
        [`${organizationUrl}?show=clients`]: 200,
        [`${organizationUrl}/clients/${client.id}`]: 200,
        '/profile/activity': 200,
        '/profile/security': 200,
        '/profile/api-keys': 200,
      });

      await page.getByLabel('Name').fill('x'.repeat(101));
      await press(page, 'Create API key');
      await page.getByRole('alert').waitFor();
      await expectAccessible(page);
      for (const url of [connection, '/profile/api-keys']) {
        await page.goto(`${on.issuer}${url}`);
        if (url !== connection)
          await page
            .getByRole('link', { name: `None (${LONG})` })
            .first()
            .click();
        const details = page.locator('details.limit');
        if (!(await details.getByLabel('Only these:').isVisible())) {
          await details.locator('summary').click();
        }
        await details.getByLabel('Only these:').check();
        await press(page, 'Save limit');
        await page.getByRole('alert').waitFor();
        await expectAccessible(page);
      }
      await page.goto(`${on.issuer}/profile/security`);
      await page.getByLabel('Current password').fill(person.password);
      await page.getByLabel('New password').fill('short');
      await press(page, 'Change password');
      await page.getByRole('alert').waitFor();
      await expectAccessible(page);
    });

    it('the pages of OAuth clients are accessible and fit on a phone', async () => {
      const { page } = await visit(axe.PHONE);
      await enterAs(page, on.issuer, session);
      await page.goto(`${on.issuer}/profile/oauth-clients`);
      await expectPage(page, 'OAuth Clients');
      await page.locator(`a[href$="${client.id}"]`).click();
      await expectPage(page, LONG);
      const parts = ['connect', 'settings', 'problems', 'secrets'];
      const own = `/profile/oauth-clients/${client.id}`;
      await expectPages(page, Object.fromEntries(parts.map((part) => [`${own}/${part}`, 200])));
      await page.goto(`${on.issuer}${own}/settings`);
      await page.getByRole('link', { name: 'Delete client' }).click();
      await press(page, 'Delete client');
      await page.getByLabel(/ to confirm$/).fill('not its name');
      await press(page, 'Delete client');
      await page.getByRole('alert').waitFor();
      await expectPage(page, `Delete ${LONG}?`);
      await page.goto(`${on.issuer}/profile/oauth-clients/new`);
      await page.getByLabel('Name').fill('Stock Sync');
      await page.getByLabel('Redirect URI 1').fill('http://App.example/cb');
      await press(page, 'Create OAuth Client');
      await page.getByRole('alert').waitFor();
      await expectPage(page, 'Create OAuth Client');
      await page.getByLabel('Redirect URI 1').fill('http://app.example/cb');
      await press(page, 'Create OAuth Client');
      await expectPage(page, 'Your new OAuth client');
    });

    // Only the texts differ from the pages above.
    it('the pages fit on a phone in German and in a made-up language with longer texts', async () => {
      const own = `/profile/oauth-clients/${client.id}`;
      const parts = ['', '/connect', '/settings', '/secrets', '/problems', '/links', '/delete'];
      const developers = ['/profile/oauth-clients', '/profile/oauth-clients/new', ...parts.map((part) => own + part)];
      const profile = ['', '/connections', `/connections/${client.id}`, '/organizations', '/security', '/activity'];
      const paths = [...developers, '/errors', '/errors/invalid_grant', ...profile.map((part) => `/profile${part}`)];
      const look = async (language: string, ...paths: readonly string[]): Promise<void> => {
        await on.service.accounts.setLanguage(person.accountId, language);
        const { page, problems } = await visit(axe.PHONE);
        await enterAs(page, on.issuer, session);
        for (const path of [...paths, requestUrl(client)]) {
          await page.goto(new URL(path, on.issuer).href);
          expect(await page.getAttribute('html', 'lang')).to.equal(language);
          await axe.expectFitting(page, `${language} ${path}`);
          expect(problems).to.deep.equal([]);
        }
      };
      await look('de', ...paths);
      // One page of each kind: a list, one entry, a form, and words about all.
      await pseudoLanguage(() =>
        look(PSEUDO, '/profile', '/profile/oauth-clients', `${own}/settings`, '/profile/security'),
      );
    });
  });
});
