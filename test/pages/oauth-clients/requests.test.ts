/** The live list of a client's requests, shown to its owner from every node. */
import { expect } from 'chai';
import { describeInBrowser, enterAs } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { authorizationUrl, exchangeCode, postForm, type TestClient } from '../../support/oauth.ts';
import { type SeededPerson, seed } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { startsOn, type TestService } from '../../support/service.ts';
import { type ClientOwner, LIST, REDIRECT_URI, signInOwner, textOf } from '../client-owner.ts';

const NO_CODE = `gate_ac_${'x'.repeat(43)}`;

describe('the live requests of a client', () => {
  const start = startsOn('postgres+redis');
  let nodes: readonly [TestService, TestService];
  let owner: ClientOwner;
  let person: SeededPerson;
  let client: Required<TestClient>;

  before(async () => {
    const first = await start();
    nodes = [first, await start({ sharing: first })];
    ({ person } = await seed(first));
    owner = await signInOwner(first, person);
  });
  beforeEach(async () => {
    client = await addClient();
  });

  async function addClient(): Promise<Required<TestClient>> {
    const { client: added, secret = '' } = await nodes[0].clients.add({
      kind: 'confidential',
      name: 'Watched',
      isNative: false,
      ownerAccountId: person.accountId,
      redirectUris: [REDIRECT_URI],
    });
    return { id: added.id, secret, redirectUri: REDIRECT_URI };
  }

  const pathOf = ({ id }: TestClient) => `${LIST}/${id}`;
  const rowsOnPage = async () =>
    (await owner.get(pathOf(client))).html.split('<template')[0]?.match(/<li class="request"/g) ?? [];
  const waitUntilWatched = (node: TestService) =>
    eventually(async () => {
      await exchangeCode(node.issuer, client, NO_CODE);
      expect(await rowsOnPage()).not.to.deep.equal([]);
    });

  /** Opens the event stream with the headers that the page sends. */
  async function listen(of: TestClient = client, by = owner) {
    const path = `${pathOf(of)}/requests`;
    const headers = { accept: 'text/event-stream', cookie: by.cookieHeader(path) };
    const response = await fetch(nodes[0].issuer + path, { headers, redirect: 'manual' });
    let text = '';
    const ended = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array);
    })().catch(() => {});
    const events = () => text.match(/^data: \{.*\}$/gm)?.map((line) => JSON.parse(line.slice('data: '.length))) ?? [];
    return { response, ended, events, text: () => text };
  }

  it('refused requests of a client at any node appear in its open page and after a reload, with the cause', async () => {
    const { response, events } = await listen();
    expect(response.headers.get('content-type')).to.include('text/event-stream');
    expect(response.headers.get('content-security-policy')).to.include("connect-src 'self'");
    for (const node of nodes) {
      await waitUntilWatched(node);
      await fetch(authorizationUrl(node.issuer, { ...client, redirectUri: `${REDIRECT_URI}/x` }));
    }
    await eventually(async () => {
      const steps = events().map(({ step, outcome }) => `${step}: ${outcome}`);
      expect(steps).to.include('token authorization_code: invalid_grant');
      expect(steps.filter((step) => step === 'authorize: invalid_redirect_uri')).to.have.length(2);
    });
    const refused = events().find(({ outcome }) => outcome === 'invalid_grant');
    expect(refused).to.include({ isRefused: true });
    expect(refused.time).to.match(/^\d\d:\d\d:\d\d UTC$/);
    expect(refused.cause).to.match(/authorization code/);
    expect(refused.requestId).to.match(/^req_/);
    expect(JSON.stringify(events())).not.to.match(/gate_(?!ci_)/);
    expect(textOf((await owner.get(pathOf(client))).html)).to.include(refused.requestId);
  });

  it("the list of a client's requests includes successful requests", async () => {
    const { events } = await listen();
    await waitUntilWatched(nodes[0]);
    const callback = await owner.authorize(authorizationUrl(nodes[0].issuer, client), person);
    const { issuer } = nodes[0];
    const { body } = await exchangeCode(issuer, client, callback.searchParams.get('code') ?? '');
    await postForm(issuer, '/oauth/revoke', { token: String(body.refresh_token) }, { client });
    await postForm(issuer, '/oauth/revoke', {}, { client });
    await eventually(async () => {
      const outcomes = events().map(({ step, outcome }) => `${step}: ${outcome}`);
      expect(outcomes).to.include.members(['authorize: code sent', 'revoke: revoked']);
      expect(outcomes).to.include.members(['revoke: invalid_request']);
      expect(outcomes).to.include('token authorization_code: tokens issued');
    });
  });

  it('the stream has the number of open problems after each request; the page shows as last use what it has just listed', async () => {
    const { text } = await listen();
    // These requests carry no secret, so none is a use of the client.
    const refused = (path: string) =>
      fetch(authorizationUrl(nodes[0].issuer, { ...client, redirectUri: REDIRECT_URI + path }));
    await eventually(async () => {
      await refused('/y');
      expect(text()).to.include('event: problems\ndata: 1\n');
    });
    await refused('/x');
    await eventually(() => expect(text()).to.include('event: problems\ndata: 2\n'));
    await nodes[0].clients.addRedirectUri(client.id, `${REDIRECT_URI}/x`);
    expect((await owner.get(pathOf(client))).html).to.match(/data-last-used>Never/);
    const callback = await owner.authorize(authorizationUrl(nodes[0].issuer, client), person);
    const code = callback.searchParams.get('code') ?? '';
    expect((await exchangeCode(nodes[0].issuer, client, code)).status).to.equal(200);
    await eventually(() => expect(text().split('event: problems').at(-1)).to.equal('\ndata: 1\n\n'));
    // The database learns of the use later.
    const { html } = await owner.get(pathOf(client));
    expect(html).to.match(/data-last-used><time/);
  });

  it('for a client whose page is not open, only refused requests are recorded', async () => {
    const [{ issuer, database }] = nodes;
    const revoke = () => postForm(issuer, '/oauth/revoke', { token: NO_CODE }, { client });
    expect((await revoke()).status).to.equal(200);
    await exchangeCode(issuer, client, NO_CODE);
    expect(await rowsOnPage()).to.have.length(1);
    await revoke();
    await eventually(async () => expect(await rowsOnPage()).to.have.length(2));
    const stored = await database.query('SELECT FROM client_requests WHERE client_id = $1', [client.id]);
    expect(stored).to.have.length(2);
  });

  it('no more requests are stored of a client whose page is open than of any other', async () => {
    const [{ issuer, database }] = nodes;
    await rowsOnPage();
    for (let sent = 0; sent < 130; sent += 10) {
      await Promise.all(
        Array.from({ length: 10 }, () => postForm(issuer, '/oauth/revoke', { token: NO_CODE }, { client })),
      );
      await rowsOnPage();
    }
    const stored = await database.query('SELECT FROM client_requests WHERE client_id = $1', [client.id]);
    expect(stored).to.have.length(100);
    expect(await rowsOnPage()).to.have.length(20);
  });

  it('while a node receives no changes, it answers 503 with Retry-After instead of an event stream', async () => {
    const answers: Response[] = [];
    await eventually(async () => {
      await nodes[0].database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse changes'",
      );
      for (let count = 0; count < 4; count += 1) answers.push((await listen()).response);
      expect(answers.map(({ status }) => status)).to.include(503);
    });
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).to.deep.equal([]);
    const refused = answers.find(({ status }) => status === 503);
    expect(refused?.headers.get('retry-after')).to.equal('2');
    await eventually(async () => expect((await listen()).response.status).to.equal(200));
  });

  it('a user can have four event streams; opening a fifth ends the oldest', async () => {
    const opened = [];
    for (let count = 0; count < 5; count += 1) opened.push(await listen());
    const [first, ...others] = opened;
    await first?.ended;
    expect(first?.text()).to.include('event: over');
    await waitUntilWatched(nodes[0]);
    await eventually(async () => {
      for (const { events } of others) expect(events()).not.to.deep.equal([]);
    });
  });

  it('the event stream of a client’s requests ends when the session ends or the client gets another owner', async () => {
    const other = await signInOwner(nodes[0], person);
    const transferredClient = await addClient();
    const [signedOut, transferred] = [await listen(client, other), await listen(transferredClient)];
    await other.send('/logout');
    await nodes[0].clients.transfer(transferredClient.id, undefined);
    await Promise.all([signedOut.ended, transferred.ended]);
    expect(signedOut.text()).to.include('event: over');
    expect(transferred.text()).to.include('event: over');
    const again = await listen(client, other);
    expect(again.response.status).to.equal(303);
  });

  it('the event stream of a client’s requests ends when its node shuts down', async () => {
    const { ended } = await listen();
    await nodes[0].close();
    await ended;
  });
});

describe('the requests of a client in its open page', () => {
  const on = startSeeded();

  describeInBrowser('in a browser', (visit) => {
    it("requests are shown with seconds in the user's time zone, new ones and after a reload", async () => {
      const { confidential } = on.clients;
      const path = `${LIST}/${confidential.id}`;
      const { page, problems } = await visit();
      const devTools = await page.context().newCDPSession(page);
      await devTools.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kathmandu' });
      await enterAs(page, on.issuer, await signInOwner(on.service, on.seeded.other));
      await page.goto(on.issuer + path);
      const rows = page.locator('li.request');
      const before = await rows.count();
      await page.getByText('New ones appear by themselves.').waitFor();
      await exchangeCode(on.issuer, confidential, NO_CODE);
      await rows.nth(before).waitFor();
      for (const isReloaded of [false, true]) {
        if (isReloaded) await page.reload();
        const time = rows.first().locator('time');
        const at = new Date((await time.getAttribute('datetime')) ?? '');
        const local = new Date(at.getTime() + (5 * 60 + 45) * 60_000).toISOString();
        expect(await time.textContent()).to.equal(local.slice(11, 19));
        expect(await time.getAttribute('title')).to.include(`${at.toISOString().slice(11, 19)} UTC`);
      }
      expect(problems).to.deep.equal([]);
    });
  });
});
