/** The pages for people who see them dark, by keyboard or by screen reader; and for hostile names. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.ts';
import { authorizationUrl, pkce, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import type { Credentials } from '../support/person.ts';
import { addPerson, type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';

describeInBrowser('pages in the browser', (visit) => {
  let service: TestService;
  let partner: Partner;
  let seeded: Seed;

  before(async () => {
    service = await startTestService();
    partner = await startPartner();
    seeded = await seed(service, { redirectUris: [partner.redirectUri] });
  });

  after(async () => {
    await service.close();
    await partner.close();
  });

  const requestUrl = (client: TestClient): string =>
    authorizationUrl(service.issuer, client, pkce().parameters).href;

  async function signIn(page: Page, { email, password }: Credentials): Promise<void> {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`axe finds nothing serious on any page, ${colorScheme}`, async () => {
      const { page } = await visit({ colorScheme, viewport: { width: 360, height: 800 } });
      const { issuer } = service;
      const open = (path: string) => page.goto(issuer + path);

      await open('/login');
      await expectAccessible(page, 'Sign in');
      await page.goto(requestUrl(seeded.clients.public));
      await signIn(page, { ...seeded.person, password: 'seven red forklifts' });
      await expectAccessible(page, 'Sign in to continue to Warehouse Map');
      await signIn(page, seeded.person);
      await expectAccessible(page, 'Let Warehouse Map act for you?');
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.waitForURL(`${partner.origin}/**`);
      await page.goBack();
      await expectAccessible(page, 'This request is over');
      await open('/profile');
      await expectAccessible(page, 'Your profile');
      await open('/logout');
      await expectAccessible(page, 'Sign out?');
      await page.getByRole('main').getByRole('button', { name: 'Sign out' }).click();
      await expectAccessible(page, 'Signed out');
      await open('/errors');
      await expectAccessible(page, 'Error reference');
      await open('/errors/invalid_grant');
      await expectAccessible(page, 'invalid_grant');
      await open('/nothing');
      await expectAccessible(page, 'There is nothing here');
      await open('/oauth/authorize?client_id=nobody');
      await expectAccessible(page, 'This app is not known here');
    });
  }

  it('a person signs in and approves by keyboard alone, and sees where they are', async () => {
    const { page } = await visit();
    await page.goto(requestUrl(seeded.clients.public));
    await tabTo(page, '[name=email]');
    await page.keyboard.type(seeded.person.email);
    await tabTo(page, '[name=password]');
    await page.keyboard.type(seeded.person.password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Let Warehouse Map act for you?' }).waitFor();
    await tabTo(page, '[value=approve]');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${partner.origin}/**`);
    expect((await partner.nextRedirect()).searchParams.get('code')).to.match(/^gate_ac_/);
  });

  it('nothing on a page is wider than a phone', async () => {
    const { page } = await visit({ viewport: { width: 320, height: 640 } });
    const text = 'x'.repeat(60);
    const client = await addClient(text);
    const person = await addPerson(service, text, `${text}@example.test`);
    await page.goto(requestUrl(client));
    await signIn(page, person);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    for (const path of ['', '/profile', '/logout', '/errors', '/errors/temporarily_unavailable']) {
      if (path !== '') await page.goto(service.issuer + path);
      expect(await page.evaluate(overflow), path).to.equal(0);
    }
  });

  const hostile = `<img src=x onerror=alert(1)>"'><script>alert(1)</script>`;

  it('markup in the name of a client or a person is shown as text', async () => {
    const { page, problems } = await visit();
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    const client = await addClient(hostile);
    const person = await addPerson(service, hostile, 'mallory@example.test');
    await page.goto(requestUrl(client));
    await page.getByText(`to continue to ${hostile}`).waitFor();
    await signIn(page, person);
    const heading = page.getByRole('heading', { level: 1 });
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await heading.textContent()).to.equal(`Let ${hostile} act for you?`);
    expect(await page.title()).to.equal(`Connect ${hostile} · Gatehouse`);
    for (const path of ['/profile', '/logout']) {
      await page.goto(service.issuer + path);
      expect(await page.getByText(hostile, { exact: true }).count(), path).to.equal(1);
    }
    expect(await page.locator('img').count()).to.equal(0);
    expect(dialogs).to.deep.equal([]);
    expect(problems).to.deep.equal([]);
  });

  async function addClient(name: string): Promise<TestClient> {
    const redirectUris = [partner.redirectUri];
    const draft = { kind: 'public', name, redirectUris, isNative: false } as const;
    const { client } = await service.clients.add(draft);
    return { id: client.id, redirectUri: partner.redirectUri };
  }
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Waits for the page with this heading, then asks axe-core about it. */
async function expectAccessible(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  // The debugger may run what the content policy keeps out of the page.
  await page.evaluate(axe);
  const violations: unknown = await page.evaluate(`axe.run().then(({ violations }) => violations

    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) })))`);
  expect(violations, name).to.deep.equal([]);
}

/** Presses Tab until the element has the focus. It must be in the order, and be seen there. */
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
