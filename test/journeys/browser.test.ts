/** People who connect a client, in a real Chromium, by what they see and press. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser, enterAs, type Visit } from '../support/browser.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, type Parameters, pkce, type TestClient } from '../support/oauth.ts';
import { type Partner, startPartner } from '../support/partner.ts';
import { type Credentials, createPerson } from '../support/person.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describeInBrowser('connecting a client in the browser', (visit) => {
  const on = startSeeded();
  /** Where the partner sends everybody after its callback: another origin than ours and its own. */
  let onward: Partner;
  let partner: Partner;
  /** A partner that stays on its callback page. */
  let plain: Partner;
  let client: TestClient;

  before(async () => {
    onward = await startPartner();
    partner = await startPartner({ onwardTo: `${onward.origin}/` });
    plain = await startPartner();
    for (const { close } of [onward, partner, plain]) atEndOfFile(close);
    const redirectUris = [partner.redirectUri, plain.redirectUri];
    client = await addTestClient(on.service, 'Warehouse Map', { kind: 'public', redirectUris });
  });

  const { parameters: challenge } = pkce();

  /** An authorization request of the client that asks for approval every time. */
  const requestUrl = (parameters: Parameters = {}): string =>
    authorizationUrl(on.issuer, client, { ...challenge, ...parameters }).href;

  const signInButton = (page: Page) => page.getByRole('button', { name: 'Sign in', exact: true });
  const approveButton = (page: Page) => page.getByRole('button', { name: 'Approve' });
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
  const CONSENT = 'Let Warehouse Map act for you?';

  async function signIn(page: Page, { email, password }: Credentials): Promise<void> {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await signInButton(page).click();
  }

  /** Opens an authorization request, signs in, and waits for the question. */
  async function signInToConsent(page: Page, parameters: Parameters = {}): Promise<void> {
    await page.goto(requestUrl(parameters));
    await signIn(page, on.seeded.person);
    await heading(page, CONSENT).waitFor();
  }
  async function signInBefore(page: Page): Promise<void> {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    await enterAs(page, on.issuer, person);
  }
  /** The question, where somebody has signed in before. */
  async function reachConsent(page: Page): Promise<void> {
    await signInBefore(page);
    await page.goto(requestUrl());
    await heading(page, CONSENT).waitFor();
  }
  /** Presses the button and waits until the partner has sent the browser on. */
  async function approve(page: Page): Promise<URLSearchParams> {
    await approveButton(page).click();
    await page.waitForURL(`${onward.origin}/`);
    const { searchParams } = await partner.nextRedirect();
    expect(searchParams.get('code')).to.match(/^gate_ac_/);
    return searchParams;
  }

  /** What the console said of scripts and policies; an answer with an error status is no problem. */
  const complaints = ({ problems }: Visit): string[] =>
    problems.filter((problem) => !problem.startsWith('Failed to load resource'));

  it('a wrong password is said in a sentence, and the right one goes on', async () => {
    // The script moves the field, and where it comes late the field has lost the focus by that.
    const { page } = await visit({ javaScript: false });
    await page.goto(requestUrl());
    await signIn(page, { ...on.seeded.person, password: 'seven red forklifts' });
    await page.getByText('The email address or the password is not right.').waitFor();
    expect(await page.title()).to.equal('Error: Sign in · Gatehouse');
    expect(await page.getByLabel('Email address').inputValue()).to.equal(on.seeded.person.email);
    await eventually(async () => {
      expect(await page.evaluate('document.activeElement?.name')).to.equal('password');
    });
    await page.getByLabel('Password', { exact: true }).fill(on.seeded.person.password);
    await page.keyboard.press('Enter');
    await heading(page, CONSENT).waitFor();
    await page.getByText('Provided by the operator of this service').waitFor();
    await page.getByRole('main').getByText(on.seeded.person.email).waitFor();
    await page.getByText(partner.redirectUri).waitFor();
    await page.getByText(on.seeded.warehouse.name).waitFor();
  });

  it('approving reaches the partner, and where the partner goes on to, under our policy', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await reachConsent(page);
    const answer = await approve(page);
    expect([...answer.keys()]).to.deep.equal(['code', 'state', 'iss']);
    expect(answer.get('state')).to.equal('state-of-the-partner');
    expect(complaints(visitor)).to.deep.equal([]);

    // Going back shows a calm page with a way on.
    await page.goBack();
    await heading(page, 'This request is over').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Continue to the app' }).click();
    await heading(page, CONSENT).waitFor();
    expect((await approve(page)).get('state')).to.equal('state-of-the-partner');
  });

  it('denying, and cancelling the sign-in, reach the partner with access_denied and state', async () => {
    const visitor = await visit();
    const { page } = visitor;
    const state = 'a b+c&d="<é';
    for (const button of ['Cancel', 'Deny']) {
      if (button === 'Deny') await signInBefore(page);
      await page.goto(requestUrl({ state }));
      await page.getByRole('button', { name: button }).click();
      await page.waitForURL(`${onward.origin}/`);
      const { searchParams } = await partner.nextRedirect();
      expect(searchParams.get('code'), button).to.equal(null);
      expect(searchParams.get('error'), button).to.equal('access_denied');
      expect(searchParams.get('state'), button).to.equal(state);
      expect(searchParams.get('iss'), button).to.equal(on.issuer);
    }
    expect(complaints(visitor)).to.deep.equal([]);
  });

  it('a double click on Approve is one answer, and a press while it is under way none', async () => {
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
    const goOn = Promise.withResolvers<void>();
    await page.route('**/interaction/*', async (route) => {
      posts += 1;
      await goOn.promise;
      await route.continue();
    });
    const isSent = page.waitForRequest((request) => request.method() === 'POST');
    await approveButton(page).click({ noWaitAfter: true });
    await isSent;
    // It still has the focus.
    await page.keyboard.press('Enter');
    goOn.resolve();
    await page.waitForURL(`${onward.origin}/`);
    expect(posts).to.equal(1);
    expect((await partner.nextRedirect()).searchParams.get('code')).to.match(/^gate_ac_/);
    expect(complaints(visitor)).to.deep.equal([]);
  });

  it('everything works without JavaScript', async () => {
    const { page } = await visit({ javaScript: false });
    await signInToConsent(page);
    await approve(page);
    await page.goto(`${on.issuer}/profile`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Signed out').waitFor();
    await page.goto(`${on.issuer}/profile`);
    await signInButton(page).waitFor();
  });

  it('a popup window finds its opener again at the callback', async () => {
    const { page } = await visit();
    await page.goto(`${plain.origin}/`);
    const opened = page.waitForEvent('popup');
    const url = requestUrl({ redirect_uri: plain.redirectUri });
    await page.evaluate(`void window.open(${JSON.stringify(url)}, 'connect', 'width=480')`);
    const popup = await opened;
    await signIn(popup, on.seeded.person);
    await approveButton(popup).click();
    await popup.getByText('connected').waitFor();
    // A page with Cross-Origin-Opener-Policy on the way would have cut the tie for good.
    expect(await popup.evaluate('window.opener?.location.href')).to.equal(`${plain.origin}/`);
  });

  it('no page of ours is drawn in a frame of another site', async () => {
    const { page } = await visit();
    await page.goto(`${plain.origin}/`);
    const addresses = [requestUrl(), `${on.issuer}/login`];
    await page.setContent(addresses.map((url) => `<iframe src="${url}"></iframe>`).join(''));
    const drawn = await Promise.all(page.frames().map((frame) => frame.locator('form').count()));
    expect(drawn).to.deep.equal([0, 0, 0]);
  });
});
