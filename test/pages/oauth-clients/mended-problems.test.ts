/** Problems of a client that close by themselves once their cause is removed. */
import { expect } from 'chai';
import { withChecksum } from '../../../src/base/random-id.ts';
import { operatorFor, valueFrom } from '../../operator/run-operator.ts';
import { partnerTokens } from '../../provider/partner-tokens.ts';
import { eventually } from '../../support/eventually.ts';
import { authorizationUrl, exchangeCode, postForm, type TestClient } from '../../support/oauth.ts';
import { startSeeded } from '../../support/seeded.ts';
import { onPostgresAndRedis } from '../../support/service.ts';
import { type ClientOwner, LIST, shownOn, signInOwner, textOf } from '../client-owner.ts';

const NO_CODE = `gate_ac_${'x'.repeat(43)}`;
const WRONG_SECRET = withChecksum(`gate_cs_${'x'.repeat(43)}`);
const OTHER_URI = 'https://partner.example/other';

onPostgresAndRedis('a problem of a client', (start) => {
  const on = startSeeded({ on: start, clock: true });
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;
  let name: string;
  let number = 0;

  beforeEach(async () => {
    number += 1;
    name = `Stock Sync ${number}`;
    owner = await signInOwner(on.service, on.seeded.person);
    client = await owner.createClient(name);
    path = `${LIST}/${client.id}`;
  });

  const authorize = (changes: Partial<TestClient> & Record<string, string> = {}) =>
    fetch(authorizationUrl(on.issuer, { ...client, ...changes }), { redirect: 'manual' });
  const wrongSecret = () => exchangeCode(on.issuer, { ...client, secret: WRONG_SECRET }, NO_CODE);

  /** Returns the numbers of open and of mended groups, and asserts that each place agrees. */
  async function counts(): Promise<readonly [open: number, mended: number]> {
    const groups = await on.service.clientRequests.groups(client.id);
    const open = groups.filter(({ isMended }) => !isMended).length;
    const mended = groups.length - open;
    const { html } = await owner.get(`${path}/problems`);
    const [above = '', below = ''] = html.split('id="mended"');
    expect(above.match(/<li class="entry problem"/g) ?? [], 'open on the page').to.have.length(open);
    expect(below.match(/<li class="entry problem"/g) ?? [], 'mended').to.have.length(mended);
    const badge = /class="badge">(\d+)/.exec(html)?.[1];
    expect(badge, 'in the tab').to.equal(open > 0 ? String(open) : undefined);
    const list = textOf((await owner.get(LIST)).html);
    const [, listed = '0'] = new RegExp(`(\\d+) problems? \\(${name}\\)`).exec(list) ?? [];
    expect(listed, 'in the list').to.equal(String(open));
    const { html: overview } = await owner.get(path);
    expect(overview.includes('id="latest-problem"'), 'on the overview').to.equal(open > 0);
    const run = operatorFor(on.service);
    const { problems } = await valueFrom(run, `clients show ${client.id}`);
    const states = problems.map((problem: { mended: boolean }) => problem.mended);
    expect(states.filter(Boolean), '`clients show`').to.have.length(mended);
    return [open, mended];
  }

  /** Waits, because a problem is recorded a query later if its client was forgotten meanwhile. */
  const expectCounts = (open: number, mended: number) =>
    eventually(async () => expect(await counts()).to.deep.equal([open, mended]));

  it('a problem with a refused redirect URI closes once this URI is registered, and others stay open', async () => {
    await authorize({ redirectUri: OTHER_URI });
    await authorize({ redirectUri: OTHER_URI });
    await authorize({ redirectUri: `${OTHER_URI}/` });
    await authorize({ redirectUri: `${OTHER_URI}?tenant=7` });
    await expectCounts(3, 0);
    await owner.send(`${path}/redirect-uris`, { redirect_uri: OTHER_URI });
    await expectCounts(2, 1);
    const page = textOf((await owner.get(`${path}/problems`)).html);
    expect(page).to.include('This redirect URI is registered now.').and.not.include('The sent URI differs');
    await owner.send(`${path}/redirect-uris`, { redirect_uri: `${OTHER_URI}?tenant=8` });
    await expectCounts(2, 1);
    expect(textOf((await owner.get(`${path}/problems`)).html)).to.include('The sent URI differs only in a value');
  });

  it('a wrong secret opens a problem, which a new secret closes and another wrong secret opens again', async () => {
    await wrongSecret();
    await expectCounts(1, 0);
    on.clock.advance(1);
    const shown = await owner.follow(await owner.send(`${path}/rotate-secret`));
    expect(shownOn(shown).secret).to.match(/^gate_cs_/);
    await expectCounts(0, 1);
    on.clock.advance(1);
    await wrongSecret();
    await expectCounts(1, 0);
  });

  it('a problem with the authentication of a client closes once the client authenticates successfully', async () => {
    // The first use after a pause is written at once.
    on.clock.advance(600);
    await exchangeCode(on.issuer, client, NO_CODE);
    on.clock.advance(1);
    await wrongSecret();
    const parameters = { grant_type: 'refresh_token', client_secret: client.secret };
    await postForm(on.issuer, '/oauth/token', parameters, { client, by: 'basic' });
    await on.service.lastUsed.flush();
    // The client was authenticated before these two problems, so they stay open. The third is the
    // refused code.
    await expectCounts(3, 0);
    on.clock.advance(600);
    await exchangeCode(on.issuer, client, NO_CODE);
    await on.service.lastUsed.flush();
    await expectCounts(1, 2);
  });

  it('a problem of a public client that sent a secret stays open when a user connects the client', async () => {
    const { public: publicClient } = on.clients;
    const groups = () => on.service.clientRequests.groups(publicClient.id);
    await exchangeCode(on.issuer, { ...publicClient, secret: WRONG_SECRET }, NO_CODE);
    on.clock.advance(600);
    await partnerTokens(on.issuer, on.seeded).tokens(publicClient);
    await on.service.lastUsed.flush();
    const [group] = await groups();
    expect(group).to.include({ error: 'invalid_client', isMended: false });
  });

  it('a problem that a suspension caused is closed once the client is resumed', async () => {
    await on.service.clients.suspend(client.id);
    await authorize();
    await exchangeCode(on.issuer, client, NO_CODE);
    await expectCounts(2, 0);
    await on.service.clients.resume(client.id);
    await expectCounts(0, 2);
  });

  it('a problem that no new secret can solve stays open for 7 days', async () => {
    await exchangeCode(on.issuer, client, NO_CODE, { scope: 'openid' });
    on.clock.advance(3_600);
    await exchangeCode(on.issuer, client, NO_CODE);
    await owner.send(`${path}/rotate-secret`);
    await on.service.lastUsed.flush();
    await expectCounts(2, 0);
    on.clock.advance(7 * 86_400);
    owner = await signInOwner(on.service, on.seeded.person);
    await expectCounts(0, 0);
  });

  it('requests with the same problem are one group, whichever code, redirect URI or authentication method they had', async () => {
    await wrongSecret();
    await exchangeCode(on.issuer, { ...client, secret: WRONG_SECRET }, NO_CODE, {
      redirect_uri: OTHER_URI,
    });
    const wrong = { client: { ...client, secret: WRONG_SECRET }, by: 'basic' } as const;
    await postForm(on.issuer, '/oauth/token', { grant_type: 'refresh_token' }, wrong);
    await expectCounts(1, 0);
    expect(textOf((await owner.get(`${path}/problems`)).html))
      .to.include('3 times')
      .and.include('Put a current secret into your servers.');
  });
});
