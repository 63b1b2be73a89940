/** The life of a client in the browser of its owner. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { authorizationUrl, exchangeCode, introspect, refresh, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { startSeeded } from '../support/seeded.ts';

describeInBrowser('the life of an OAuth client', (visit) => {
  const on = startSeeded();
  let partner: Partner;

  before(async () => {
    partner = await startPartner();
    atEndOfFile(partner.close);
  });

  const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click();
  const shownSecret = async (page: Page): Promise<string> => (await page.locator('[data-secret]').textContent()) ?? '';

  it('a client is created, connected, rotated, edited and deleted in the browser', async () => {
    const { page, problems } = await visit();
    const { issuer, service } = on;
    await page.goto(`${issuer}/profile`);
    await page.getByLabel('Email address').fill(on.seeded.person.email);
    await page.locator('[name=password]').fill(on.seeded.person.password);
    await press(page, 'Sign in');
    await page.getByRole('link', { name: 'Developer' }).click();
    await page.getByText('You have no OAuth clients yet.').waitFor();

    // Create: the first try has an invalid redirect URI, which is corrected.
    await page.getByRole('link', { name: 'Create OAuth Client' }).click();
    await page.getByLabel('Name').fill('Stock Sync');
    await page.getByLabel('Redirect URI 1').fill(partner.redirectUri.toUpperCase());
    await press(page, 'Add another');
    await page.locator('#redirect-uri-2:focus').waitFor();
    await page.getByLabel('Redirect URI 2').fill('https://app.example/callback');
    await page.getByLabel('Redirect URI 2').press('Enter');
    const summary = page.getByRole('alert').getByRole('link');
    await summary.click();
    const first = page.getByLabel('Redirect URI 1');
    expect(await first.inputValue()).to.equal(partner.redirectUri.toUpperCase());
    expect(await first.getAttribute('aria-invalid')).to.equal('true');
    await first.fill(partner.redirectUri);
    await press(page, 'Create OAuth Client');

    await page.getByRole('heading', { name: 'Your new OAuth client' }).waitFor();
    const secret = await shownSecret(page);
    expect(secret).to.match(/^gate_cs_[A-Za-z0-9_-]{49}$/);
    const id = (await page.locator('[data-client-id]').textContent()) ?? '';
    const client: TestClient = { id, secret, redirectUri: partner.redirectUri };
    await page.getByRole('link', { name: 'I have copied it' }).click();
    await page.getByRole('heading', { name: 'Stock Sync' }).waitFor();
    await page.goBack();
    expect(await page.content()).not.to.include(secret);
    await page.goForward();

    // A user connects the client, which exchanges its code with the secret.
    await page.goto(authorizationUrl(issuer, client).href);
    await press(page, 'Approve');
    const code = (await partner.nextRedirect()).searchParams.get('code') ?? '';
    const exchanged = await exchangeCode(issuer, client, code);
    expect(exchanged.status, exchanged.text).to.equal(200);
    const accessToken = String(exchanged.body.access_token);
    let refreshToken = String(exchanged.body.refresh_token);

    // Rotate: both secrets work, then only the new one.
    await page.goto(`${issuer}/profile/oauth-clients/${id}/secrets`);
    await press(page, 'Rotate secret');
    await page.getByRole('heading', { name: 'Your new client secret' }).waitFor();
    const newer = { ...client, secret: await shownSecret(page) };
    await page.getByRole('link', { name: 'I have copied it' }).click();
    await page.getByRole('link', { name: 'Secrets' }).click();
    for (const either of [client, newer]) {
      const { status, body } = await refresh(issuer, either, refreshToken);
      expect(status).to.equal(200);
      refreshToken = String(body.refresh_token);
    }
    await page.getByRole('link', { name: `Remove (the secret ending in ${secret.slice(-4)})` }).click();
    await press(page, 'Remove secret');
    await page.getByText('The secret is removed.').waitFor();
    expect((await refresh(issuer, client, refreshToken)).status).to.equal(401);

    // The problems page shows the failed requests with their causes.
    await page.getByRole('link', { name: 'Problems' }).click();
    await page.getByText('client_secret is not one of the live secrets').waitFor();
    await page.goto(`${authorizationUrl(issuer, { ...client, redirectUri: `${partner.redirectUri}/` })}`);
    await page.getByText('return address is not registered').waitFor();
    await page.goto(`${issuer}/profile/oauth-clients/${id}/problems`);
    await page.getByText(`${partner.redirectUri}/`, { exact: true }).waitFor();

    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByLabel('Name').fill('Stock Sync 2');
    await press(page, 'Remove (Redirect URI 2)');
    await page.getByLabel('Redirect URI 2').waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name').inputValue()).to.equal('Stock Sync 2');
    await press(page, 'Save changes');
    await page.getByText('The changes are saved.').waitFor();
    expect(await service.clients.find(id)).to.deep.include({
      name: 'Stock Sync 2',
      redirectUris: [partner.redirectUri],
    });

    // Delete: all tokens stop working.
    await page.getByRole('link', { name: 'Delete client' }).click();
    await page.getByText('1 person has connected it').waitFor();
    await page.getByLabel(/ to confirm$/).fill('Stock Sync 2');
    await press(page, 'Delete client');
    await page.getByText('The client is deleted.').waitFor();
    await page.getByText('You have no OAuth clients yet.').waitFor();
    const { resourceServer } = on.clients;
    expect((await introspect(issuer, resourceServer, accessToken)).body).to.deep.equal({
      active: false,
    });
    expect((await refresh(issuer, newer, refreshToken)).status).to.equal(401);
    expect((await page.goto(`${issuer}/profile/oauth-clients/${id}`))?.status()).to.equal(404);

    // The console reports only the expected refusals.
    const others = problems.filter((problem) => !/status of (400|404|422)/.test(problem));
    expect(others).to.deep.equal([]);
  });
});
