/** One page of each kind is accessible, forms work by keyboard, and names are text; the slow run visits every page. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { signedIn } from '../pages/signed-in-person.ts';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser, enterAs, signInOn } from '../support/browser.ts';
import { authorizationUrl, pkce, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const LONG = 'Ünbroken'.repeat(8);

describeInBrowser('pages in the browser', (visit) => {
  const on = startSeeded();
  let partner: Partner;
  let client: TestClient;

  before(async () => {
    partner = await startPartner();
    client = await addTestClient(on.service, LONG, {
      redirectUris: [partner.redirectUri],
      ownerAccountId: on.seeded.person.accountId,
    });
  });

  const requestUrl = (): string =>
    authorizationUrl(on.issuer, client, { ...pkce().parameters, prompt: 'consent' }).href;
  const press = (page: Page, name: string): Promise<void> =>
    page.getByRole('main').getByRole('button', { name }).first().click();
  const enter = async (page: Page): Promise<void> =>
    enterAs(page, on.issuer, await signedIn(on.service, on.seeded.person));

  it('one page of each kind is accessible and fits on a phone: an error, a form, a request, a list, a client, a new secret', async () => {
    const { page } = await visit(PHONE);
    await page.goto(`${on.issuer}/nothing`);
    await expectAccessible(page);
    await page.goto(requestUrl());
    await signInOn(page, { ...on.seeded.person, password: 'seven red forklifts' });
    await page.getByText('Wrong email address or password.').waitFor();
    await expectAccessible(page, 'sign-in');
    await signInOn(page, on.seeded.person);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await expectAccessible(page, 'consent');
    for (const path of ['/profile/connections', `/profile/oauth-clients/${client.id}`]) {
      await page.goto(on.issuer + path);
      await expectAccessible(page, path);
    }
    await page.goto(`${on.issuer}/profile/api-keys`);
    await page.getByLabel('Name').fill(LONG);
    await press(page, 'Create API key');
    await page.getByRole('heading', { level: 1, name: 'Your new API key' }).waitFor();
    await expectAccessible(page, 'new API key');
  });

  it('the error summary of a form links to the invalid field, which has the error as its description', async () => {
    const { page } = await visit();
    await enter(page);
    await page.goto(`${on.issuer}/profile/api-keys`);
    await page.getByLabel('Name').fill('x'.repeat(101));
    await press(page, 'Create API key');
    await page.getByRole('alert').getByRole('link').click();
    const field = page.getByLabel('Name');
    await page.locator('#name:focus').waitFor();
    expect(await field.getAttribute('aria-invalid')).to.equal('true');
    const described = (await field.getAttribute('aria-describedby')) ?? '';
    const texts = described.split(' ').map((id) => page.locator(`#${id}`).textContent());
    expect((await Promise.all(texts)).join(' ')).to.include('Give the key a name');
    expect(await page.title()).to.match(/^Error: /);
  });

  it('a time is shown in the time zone of the reader, with the time in UTC on hover', async () => {
    const { page } = await visit({ timezoneId: 'Asia/Kathmandu' });
    await enter(page);
    await page.goto(`${on.issuer}/profile/activity`);
    const time = page.locator('time').first();
    const utc = (await time.getAttribute('datetime')) ?? '';
    const AHEAD_MS = 5.75 * 3_600_000;
    const local = new Date(Date.parse(utc) + AHEAD_MS).toISOString();
    expect(await time.textContent()).to.include(`, ${local.slice(11, 16)})`);
    expect(await time.getAttribute('title')).to.include(`, ${utc.slice(11, 16)} UTC)`);
  });

  it('sign-in and approval work with the keyboard alone, with a visible focus', async () => {
    const { page } = await visit();
    await page.goto(requestUrl());
    // The first field has the focus from the start.
    await page.locator('[name=email]:focus').waitFor();
    await page.keyboard.type(on.seeded.person.email);
    await tabTo(page, '[name=password]');
    await page.keyboard.type(on.seeded.person.password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: `Allow ${LONG} to access your warehouses?` }).waitFor();
    await tabTo(page, '[value=approve]');
    const before = partner.received.length;
    await page.keyboard.press('Enter');
    await page.waitForURL(`${partner.origin}/**`);
    expect(partner.received[before]?.searchParams.get('code')).to.match(/^gate_ac_/);
  });
});

/** Presses Tab until the element has the focus, which must be visible. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 15; presses += 1) {
    await page.keyboard.press('Tab');
    if ((await page.locator(`${selector}:focus`).count()) === 1) {
      const outline = `getComputedStyle(document.activeElement).outlineStyle`;
      expect(await page.evaluate(outline), selector).to.equal('solid');
      return;
    }
  }
  throw new Error(`Tab does not reach ${selector}`);
}
