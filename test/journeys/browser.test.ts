/** Users connect a client in a real Chromium. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { signedIn } from '../pages/signed-in-person.ts';
import { describeInBrowser, enterAs, signInOn, type Visit } from '../support/browser.ts';
import { authorizationUrl, type Parameters, pkce, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describeInBrowser('connecting a client in the browser', (visit) => {
  const on = startSeeded();
  /** The partner to whose origin the first partner redirects after its callback. */
  let onward: Partner;
  let partner: Partner;
  /** A partner whose callback page does not redirect any further. */
  let plain: Partner;
  let client: TestClient;

  before(async () => {
    onward = await startPartner();
    partner = await startPartner({ onwardTo: `${onward.origin}/` });
    plain = await startPartner();
    const redirectUris = [partner.redirectUri, plain.redirectUri];
    client = await addTestClient(on.service, 'Warehouse Map', { kind: 'public', redirectUris });
  });

  const { parameters: challenge } = pkce();

  /** An authorization request of a public client, which requires approval every time. */
  const requestUrl = (parameters: Parameters = {}): string =>
    authorizationUrl(on.issuer, client, { ...challenge, ...parameters }).href;

  const approveButton = (page: Page) => page.getByRole('button', { name: 'Approve' });
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
  const CONSENT = 'Allow Warehouse Map to access your warehouses?';

  const signInBefore = async (page: Page) => enterAs(page, on.issuer, await signedIn(on, on.seeded.person));
  /** Opens the consent page with an existing session. */
  async function reachConsent(page: Page): Promise<void> {
    await signInBefore(page);
    await page.goto(requestUrl());
    await heading(page, CONSENT).waitFor();
  }
  /** Approves, and waits until the partner has redirected the browser. */
  async function approve(page: Page): Promise<URLSearchParams> {
    await approveButton(page).click();
    await page.waitForURL(`${onward.origin}/`);
    const { searchParams } = await partner.nextRedirect();
    expect(searchParams.get('code')).to.match(/^gate_ac_/);
    return searchParams;
  }

  /** The console's errors about scripts and content policies, but not about failed HTTP requests. */
  const scriptProblems = ({ problems }: Visit): string[] =>
    problems.filter((problem) => !problem.startsWith('Failed to load resource'));

  it('the content security policy allows the redirect after Approve to the client, and from there to another page', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await reachConsent(page);
    const answer = await approve(page);
    expect([...answer.keys()]).to.deep.equal(['code', 'state', 'iss']);
    expect(answer.get('state')).to.equal('state-of-the-partner');
    expect(scriptProblems(visitor)).to.deep.equal([]);

    // The Back button leads to a page that offers to continue.
    await page.goBack();
    await heading(page, 'This request is no longer open').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Continue to the app' }).click();
    await heading(page, CONSENT).waitFor();
    expect((await approve(page)).get('state')).to.equal('state-of-the-partner');
  });

  it('a double click on Approve, or a key press during the request, submits the form only once', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await reachConsent(page);
    const before = partner.received.length;
    await approveButton(page).dblclick();
    await page.waitForURL(`${onward.origin}/`);
    expect(partner.received.slice(before)).to.have.length(1);
    await partner.nextRedirect();

    await page.goto(requestUrl());
    let posts = 0;
    const proceed = Promise.withResolvers<void>();
    await page.route('**/interaction/*', async (route) => {
      posts += 1;
      await proceed.promise;
      await route.continue();
    });
    const requestSent = page.waitForRequest((request) => request.method() === 'POST');
    await approveButton(page).click({ noWaitAfter: true });
    await requestSent;
    // Press Enter on the button, which still has the focus.
    await page.keyboard.press('Enter');
    proceed.resolve();
    await page.waitForURL(`${onward.origin}/`);
    expect(posts).to.equal(1);
    expect((await partner.nextRedirect()).searchParams.get('code')).to.match(/^gate_ac_/);
    expect(scriptProblems(visitor)).to.deep.equal([]);
  });

  it('a popup at the callback of the client can still reach the window that opened it', async () => {
    const { page } = await visit();
    await page.goto(`${plain.origin}/`);
    const opened = page.waitForEvent('popup');
    const url = requestUrl({ redirect_uri: plain.redirectUri });
    await page.evaluate(`void window.open(${JSON.stringify(url)}, 'connect', 'width=480')`);
    const popup = await opened;
    await signInOn(popup, on.seeded.person);
    await approveButton(popup).click();
    await popup.getByText('connected').waitFor();
    // A page with Cross-Origin-Opener-Policy on the way would have removed the opener for good.
    expect(await popup.evaluate('window.opener?.location.href')).to.equal(`${plain.origin}/`);
  });
});
