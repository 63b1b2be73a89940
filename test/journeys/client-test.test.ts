/** "Test this client" and the programs to copy, by the developer who owns the client, in Chromium. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { clientSnippets } from '../../src/pages/client-snippets.ts';
import { violationsOn } from '../support/axe.ts';
import { describeInBrowser, type VisitOptions } from '../support/browser.ts';
import type { TestClient } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';

describeInBrowser('testing a client in the browser', (visit) => {
  let service: TestService;
  let seeded: Seed;
  let client: TestClient;

  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
    client = seeded.clients.confidential;
  });
  after(() => service.close());

  async function openClient(page: Page): Promise<void> {
    await page.goto(`${service.issuer}/profile/oauth-clients/${client.id}`);
    await page.getByLabel('Email address').fill(seeded.other.email);
    await page.locator('[name=password]').fill(seeded.other.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await heading(page, 'Route Planner').waitFor();
  }
  const heading = (page: Page, name: string) =>
    page.getByRole('heading', { level: 1, name, exact: true });
  const test = (page: Page) => page.getByRole('button', { name: 'Test this client' }).click();
  const answer = (page: Page, name: string) => page.getByRole('button', { name }).click();
  const secretField = (page: Page) => page.getByLabel('Client secret', { exact: true });

  async function expectFine(page: Page, name: string): Promise<void> {
    expect(await violationsOn(page), name).to.deep.equal([]);
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect(await page.evaluate(overflow), name).to.equal(0);
  }

  const phone = { viewport: { width: 360, height: 740 } };
  const visits: Readonly<Record<string, VisitOptions>> = {
    'on a phone': phone,
    'on a dark phone': { ...phone, colorScheme: 'dark' },
    'without JavaScript': { javaScript: false },
  };

  for (const [title, options] of Object.entries(visits)) {
    it(`a developer pastes the secret, approves, and sees that the client works, ${title}`, async () => {
      const { page, problems } = await visit(options);
      await openClient(page);
      if (options.javaScript !== false) await expectFine(page, 'the client');
      expect(await secretField(page).getAttribute('autocomplete')).to.equal('off');

      await secretField(page).fill('my guess');
      await test(page);
      await page.getByRole('alert').getByRole('link').click();
      expect(await secretField(page).inputValue()).to.equal('');
      expect(await page.locator(':focus').getAttribute('name')).to.equal('client_secret');
      if (options.javaScript !== false) await expectFine(page, 'the wrong secret');

      await page.locator(':focus').fill(client.secret ?? '');
      await test(page);
      await heading(page, 'Let Route Planner act for you?').waitFor();
      await page.getByText(`${service.issuer}/profile/oauth-clients/test/callback`).waitFor();
      await answer(page, 'Approve');

      await heading(page, 'Test of Route Planner').waitFor();
      await page.getByText('This client works.').waitFor();
      expect(await page.getByText('as it should be', { exact: true }).count()).to.equal(7);
      await page.getByText('"active": false').waitFor();
      await page.getByText(seeded.elsewhere.name).waitFor();
      if (options.javaScript !== false) await expectFine(page, 'the result');
      // A reload shows the same again, and begins nothing.
      await page.reload();
      await page.getByText('This client works.').waitFor();

      await page.getByRole('link', { name: 'Back to Route Planner' }).click();
      await heading(page, 'Route Planner').waitFor();
      const connected = page.locator('dt', { hasText: 'People connected' }).locator('+ dd');
      expect(await connected.textContent()).to.equal('0');
      expect(problems.filter((problem) => !problem.includes('422'))).to.deep.equal([]);
    });
  }

  it('a developer who denies is told what a client is told', async () => {
    const { page } = await visit();
    await openClient(page);
    await secretField(page).fill(client.secret ?? '');
    await test(page);
    await answer(page, 'Deny');
    await page.getByRole('alert').getByText('You denied the request').waitFor();
    await page.getByText('error=access_denied').waitFor();
  });

  it('each program is copied as it stands', async () => {
    const { page } = await visit(phone);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await openClient(page);
    const { issuer } = service;
    const values = { issuer, clientId: client.id, redirectUri: client.redirectUri };
    for (const { name, code } of clientSnippets(values)) {
      await page.locator('summary', { hasText: name }).click();
      await page.getByRole('button', { name: `Copy the program for ${name}` }).click();
      const copied = await page.evaluate('navigator.clipboard.readText()');
      expect(copied, name).to.equal(code.trim());
    }
    await expectFine(page, 'the client with its programs');
  });
});
