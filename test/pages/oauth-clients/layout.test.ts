import { describeInBrowser, enterAs } from '../../support/browser.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner } from '../client-owner.ts';

describeInBrowser('the pages of an OAuth client in a browser', (visit) => {
  const on = startSeeded();
  let owner: ClientOwner;

  beforeEach(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
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
