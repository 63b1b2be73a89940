/** The pages of a client in a browser: layout, time zone, and that open pages stay open. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser, enterAs } from '../../support/browser.ts';
import { authorizationUrl } from '../../support/oauth.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner } from '../client-owner.ts';

describeInBrowser('the pages of an OAuth client in a browser', (visit) => {
  const on = startSeeded();
  let owner: ClientOwner;

  beforeEach(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });

  const widthOf = async (page: Page, selector: string): Promise<number> =>
    (await page.locator(selector).first().boundingBox())?.width ?? 0;

  it('values in the list of problems use the full width, also on a phone', async () => {
    const client = await owner.createClient('Wide Enough');
    const sent = { ...client, redirectUri: 'https://partner.example/another/callback' };
    await fetch(authorizationUrl(on.issuer, sent), { redirect: 'manual' });
    for (const width of [1280, 360]) {
      const { page } = await visit({ viewport: { width, height: 800 } });
      await enterAs(page, on.issuer, owner);
      await page.goto(`${on.issuer}${LIST}/${client.id}/problems`);
      const entry = await widthOf(page, '.entry');
      expect(await widthOf(page, '.entry > .values'), `at ${width}`).to.be.closeTo(entry, 1);
    }
  });

  it('the link with the name of the service is no wider than its text', async () => {
    const { page } = await visit();
    await enterAs(page, on.issuer, owner);
    await page.goto(`${on.issuer}/profile`);
    expect(await widthOf(page, 'a.wordmark')).to.be.within(60, 200);
  });

  it("times in sentences and in button labels use the user's time zone; a value says how long ago it was", async () => {
    const client = await owner.createClient('Two Secrets');
    const path = `${LIST}/${client.id}`;
    await owner.send(`${path}/rotate-secret`);
    const { page } = await visit();
    await enterAs(page, on.issuer, owner);
    await page.goto(`${on.issuer}${path}/secrets`);
    await page.getByRole('link', { name: 'Remove' }).first().click();
    await page.getByText(/was created on (?!.*UTC).* and never used/).waitFor();
    await signInOwner(on.service, on.seeded.person);
    await page.goto(`${on.issuer}/profile/security`);
    const button = page.getByRole('button', { name: /^Sign out .* signed in (?!.*UTC).*$/ });
    await button.first().waitFor();
    await page
      .getByText(/^just now/)
      .first()
      .waitFor();
  });
});
