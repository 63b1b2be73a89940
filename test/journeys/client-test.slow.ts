/** "Test this client" and copying the example programs, by the owner of the client in Chromium. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { clientSnippets, SUGGESTED_REDIRECT_URI } from '../../src/pages/oauth-clients/programs.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import type { TestClient } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

describeInBrowser('testing a client in the browser', (visit) => {
  const on = startSeeded();
  let client: TestClient;

  before(() => {
    client = on.clients.confidential;
  });

  async function openClient(page: Page): Promise<void> {
    const developer = createPerson(on.issuer);
    await developer.signIn(on.seeded.other);
    await enterAs(page, on.issuer, developer);
    await page.goto(`${on.issuer}/profile/oauth-clients/${client.id}/connect`);
    await heading(page, 'Route Planner').waitFor();
  }
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });
  const test = (page: Page) => page.getByRole('button', { name: 'Test this client' }).click();
  const answer = (page: Page, name: string) => page.getByRole('button', { name }).click();
  const secretField = (page: Page) => page.getByLabel('Client secret', { exact: true });

  it('a developer tests a client: enters its secret, approves, and sees that it works', async () => {
    const { page, problems } = await visit(PHONE);
    await openClient(page);
    await expectAccessible(page, 'the client');
    expect(await secretField(page).getAttribute('autocomplete')).to.equal('off');

    await secretField(page).fill('my guess');
    await test(page);
    await page.getByRole('alert').getByRole('link').click();
    expect(await secretField(page).inputValue()).to.equal('');
    await page.locator('[name=client_secret]:focus').waitFor();
    await expectAccessible(page, 'the wrong secret');

    await page.locator(':focus').fill(client.secret ?? '');
    await test(page);
    await heading(page, 'Allow Route Planner to access your warehouses?').waitFor();
    await page.getByText(`${on.issuer}/profile/oauth-clients/test/callback`).waitFor();
    await answer(page, 'Approve');

    await heading(page, 'Test of Route Planner').waitFor();
    await page.getByText('This client works.').waitFor();
    expect(await page.getByText('OK', { exact: true }).count()).to.equal(9);
    for (const step of await page.locator('.exchanges summary').all()) await step.click();
    await page.getByText('"active": false').first().waitFor();
    await page.getByText(on.seeded.elsewhere.name).waitFor();
    await expectAccessible(page, 'the result');
    // A reload shows the same result and starts no new test.
    await page.reload();
    await page.getByText('This client works.').waitFor();

    await page.getByRole('link', { name: 'Back to Route Planner' }).click();
    await page.getByRole('link', { name: 'Overview' }).click();
    const connected = page.locator('dt', { hasText: 'People connected' }).locator('+ dd');
    expect(await connected.textContent()).to.equal('0');
    expect(problems.filter((problem) => !problem.includes('422'))).to.deep.equal([]);
  });

  it('each example program is copied unchanged', async () => {
    const { page } = await visit(PHONE);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await openClient(page);
    const { issuer } = on;
    const values = {
      issuer,
      clientId: client.id,
      redirectUri: SUGGESTED_REDIRECT_URI,
      api: undefined,
    };
    for (const { name, code } of clientSnippets(values)) {
      await page.getByText(name, { exact: true }).click();
      await page.getByRole('button', { name: `Copy the program for ${name}` }).click();
      const copied = await page.evaluate('navigator.clipboard.readText()');
      expect(copied, name).to.equal(code.trim());
    }
    await expectAccessible(page, 'the client with its programs');
  });
});
