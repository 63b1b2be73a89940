/** In Chromium, entered values survive invalid forms, Back, an ended session, a forgotten password. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { LIST, REDIRECT_URI } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { passwordLink } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const NEW_PASSWORD = 'eight blue pallets, stacked';

describeInBrowser('the values that users enter', (visit) => {
  const on = startSeeded({
    settings: { mail: { smtpUrl: 'smtp://127.0.0.1:9', from: 'gatehouse@example.test' } },
  });

  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
  const press = (page: Page, name: string) => page.getByRole('button', { name }).first().click();
  const focused = (page: Page) => page.evaluate<string>('document.activeElement?.id');

  async function signedInPage(javaScript: boolean): Promise<Page> {
    const { page } = await visit({ javaScript });
    await enterAs(page, on.issuer, await signedIn(on, on.seeded.person));
    return page;
  }

  for (const [how, javaScript] of Object.entries({ with: true, without: false })) {
    it(`the Back button restores a refused form without resubmission, ${how} JavaScript`, async () => {
      const page = await signedInPage(javaScript);
      await page.goto(`${on.issuer}${LIST}/new`);
      await page.getByLabel('Name').fill('Stock Sync');
      await page.getByLabel('Redirect URI 1').fill(`${REDIRECT_URI}#fragment`);
      await page.getByRole('button', { name: 'Add another' }).click();
      if (javaScript) await page.locator('#redirect-uri-2:focus').waitFor();
      await page.getByLabel('Redirect URI 2').fill(`${REDIRECT_URI}/2`);
      // It sends the form, and adds no third row.
      await page.getByLabel('Redirect URI 2').press('Enter');
      await page.getByText('Redirect URI 1:').waitFor();
      await eventually(async () => expect(await focused(page)).to.equal('redirect-uri-1'));
      await page.getByLabel('Redirect URI 1').fill(REDIRECT_URI);
      await page.getByRole('button', { name: 'Create OAuth Client' }).click();
      await page.locator('[data-secret]').waitFor();

      await page.goBack();
      await page.getByText('Redirect URI 1:').waitFor();
      expect(await page.getByLabel('Name').inputValue()).to.equal('Stock Sync');
      expect(await page.getByLabel('Redirect URI 2').inputValue()).to.equal(`${REDIRECT_URI}/2`);
      await page.goBack();
      await page.getByLabel('Redirect URI 2').waitFor();
      expect(await page.locator('[aria-invalid]').count()).to.equal(0);
      await page.goBack();
      await heading(page, 'Create OAuth Client').waitFor();

      await page.getByLabel('Name').fill('Typed');
      await page.getByLabel('Redirect URI 1').fill(REDIRECT_URI);
      await page.getByRole('button', { name: 'Add another' }).click();
      await page.getByRole('button', { name: 'Remove (Redirect URI 2)' }).click();
      await page.getByLabel('Redirect URI 2').waitFor({ state: 'detached' });
      expect(await page.getByLabel('Name').inputValue()).to.equal('Typed');
    });
  }

  it('a script that loads late does not move the focus', async () => {
    const { page } = await visit();
    let load = () => {};
    const loading = new Promise<void>((resolve) => {
      load = resolve;
    });
    await page.route('**/assets/*.js', async (route) => {
      await loading;
      await route.continue();
    });
    await page.goto(`${on.issuer}/login`, { waitUntil: 'commit' });
    await page.getByLabel('Password', { exact: true }).focus();
    load();
    await page.getByRole('button', { name: 'Show password' }).waitFor();
    expect(await focused(page)).to.equal('password');
  });

  it('after resetting a forgotten password the user continues to the app, with the email address already entered', async () => {
    const { page } = await visit();
    const { email } = on.seeded.other;
    await page.goto(authorizationUrl(on.issuer, on.clients.public, CHALLENGE).href);
    await page.getByLabel('Email address').fill(email);
    await page.getByRole('link', { name: 'Forgot your password, or never set one?' }).click();
    await page.getByRole('button', { name: 'Send the link' }).waitFor();
    expect(await page.getByLabel('Email address').inputValue()).to.equal(email);
    await press(page, 'Send the link');
    await page.getByRole('link', { name: 'Back to sign in' }).click();
    await page.getByText('to continue to').waitFor();

    const mailed = await page.context().newPage();
    await mailed.goto(on.issuer + (await passwordLink(on.service, on.seeded.other)));
    await mailed.getByLabel('New password').fill(NEW_PASSWORD);
    await press(mailed, 'Set password');
    await mailed.getByText('to continue to').waitFor();
    await mailed.getByText('Your password was set.').waitFor();
    expect(await mailed.getByLabel('Email address').inputValue()).to.equal(email);
    await mailed.getByLabel('Password', { exact: true }).fill(NEW_PASSWORD);
    await press(mailed, 'Sign in');
    await mailed.getByRole('button', { name: 'Approve' }).waitFor();
  });
});

const CHALLENGE = {
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
};
