/** `/profile/oauth-clients/:id/test`: the owner goes through the flow, and leaves nothing behind. */
import { expect } from 'chai';
import type { ClientKind } from '../../src/clients/client.ts';
import { authorizationUrl, exchangeCode, introspect, type TestClient } from '../support/oauth.ts';
import type { Page } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { CALLBACK, testBrowser, testPath } from './test-browser.ts';

const WORKS = 'This client works.';

forEachDeployment('the test of a client', (start) => {
  let service: TestService;
  let seeded: Seed;
  let client: TestClient;
  before(async () => {
    service = await start();
    seeded = await seed(service);
    client = seeded.clients.confidential;
  });

  it('goes through the whole flow, over HTTP, and shows each request with its answer', async () => {
    const browser = await testBrowser(service, seeded.other);
    const page = await browser.run(client);
    expect(page.status).to.equal(200);
    expect(textOf(page.html)).to.include(WORKS);
    expect(titlesOf(page)).to.deep.equal([
      'Authorization request: as it should be',
      'Exchange the code: as it should be',
      'Ask about the token: as it should be',
      'Refresh: as it should be',
      'Refresh with the old token again: as it should be',
      'Revoke: as it should be',
      'Ask again: as it should be',
    ]);
    const [, exchange, , refresh, again] = answersOf(page);
    expect(exchange).to.include({ expires_in: 3600, token_type: 'Bearer' });
    expect(again?.refresh_token).to.equal(refresh?.refresh_token);
    expect(again?.refresh_token).not.to.equal(exchange?.refresh_token);
    expect(again?.access_token).not.to.equal(refresh?.access_token);
    // What the warehouse API would be told.
    expect(textOf(page.html)).to.include(`${seeded.elsewhere.name} owner`);
  });

  it('shows no code, token, verifier or secret in full, and logs none', async () => {
    const browser = await testBrowser(service, seeded.other);
    const { html } = await browser.run(client);
    expect(html).not.to.match(/gate_(?!ci_)[a-z]+_[\w-]{12}/);
    expect(html).to.match(/code_verifier=[\w-]{4}…[\w-]{4}\n/);
    expect(html).not.to.include(client.secret);
    expect(service.logLines.join('')).not.to.match(/gate_(?!ci_)[a-z]+_[\w-]{12}/);
  });

  it('connects nobody: a connection that was there stays as it was, and its tokens alive', async () => {
    const { issuer, connections, activity } = service;
    const { accountId } = seeded.other;
    const browser = await testBrowser(service, seeded.other);
    await browser.run(client);
    expect(await connections.listOf(accountId)).to.deep.equal([]);
    const [latest] = await activity.of(accountId, { limit: 1 });
    expect(latest).to.deep.include({
      action: 'client_tested',
      details: { client_id: client.id, client_name: 'Route Planner' },
    });

    const callback = await browser.authorize(authorizationUrl(issuer, client), seeded.other);
    const { body } = await exchangeCode(issuer, client, callback.searchParams.get('code') ?? '');
    const before = await connections.listOf(accountId);
    const grants = await connections.grantsOf(accountId, client.id);
    expect(textOf((await browser.run(client)).html)).to.include(WORKS);
    expect(await connections.listOf(accountId)).to.deep.equal(before);
    expect(await connections.grantsOf(accountId, client.id)).to.deep.equal(grants);
    const token = await introspect(issuer, client, String(body.access_token));
    expect(token.body.active).to.equal(true);
    await connections.end(accountId, client.id);
  });

  it('the person who denies sees what a client is told, and nothing is issued', async () => {
    const browser = await testBrowser(service, seeded.other);
    const page = await browser.run(client, 'deny');
    expect(textOf(page.html)).to.include('You denied the request, so nothing was issued.');
    expect(page.html).to.include('error=access_denied');
    expect(titlesOf(page)).to.deep.equal(['Authorization request: as it should be']);
  });

  it('a result is for its owner, on the page of its client', async () => {
    const browser = await testBrowser(service, seeded.other);
    const { url } = await browser.run(client);
    expect(textOf((await browser.get(url)).html)).to.include(WORKS);
    const another = await add('confidential');
    const elsewhere = await browser.get(testPath(another.id) + url.search);
    expect(textOf(elsewhere.html)).to.include('this one is over');
    expect(elsewhere.html).not.to.include('grant_type');
    const stranger = await testBrowser(service, seeded.person);
    expect((await stranger.get(url)).status).to.equal(404);
  });

  it('a secret that was removed on the way stops the test with the cause', async () => {
    const another = await add('confidential');
    const browser = await testBrowser(service, seeded.other);
    const callback = await browser.decide(await browser.begin(another));
    const [first] = (await service.clients.find(another.id))?.secrets ?? [];
    await service.clients.addSecret(another.id);
    await service.clients.removeSecret(another.id, first?.id ?? '');
    const page = await browser.follow(await browser.get(callback));
    expect(titlesOf(page).at(-1)).to.equal('Exchange the code: refused');
    expect(textOf(page.html)).to.include('Refused as invalid_client');
  });

  it('a public client is tested without a secret', async () => {
    const page = await (await testBrowser(service, seeded.other)).run(await add('public'));
    expect(textOf(page.html)).to.include(WORKS);
    expect(titlesOf(page)).to.have.length(5);
  });

  async function add(kind: ClientKind): Promise<TestClient> {
    const { client, secret } = await service.clients.add({
      ...{ kind, name: 'Another', isNative: false, ownerAccountId: seeded.other.accountId },
      redirectUris: ['https://partner.example/another'],
    });
    return { id: client.id, redirectUri: '', ...(secret !== undefined && { secret }) };
  }
});

describe('the test of a client, where no refresh may be retried', () => {
  it('shows that the second use of a refresh token ends the authorization', async () => {
    const service = await startTestService({ settings: { tokens: { retryWindowSeconds: 0 } } });
    after(() => service.close());
    const { other, clients } = await seed(service);
    const page = await (await testBrowser(service, other)).run(clients.confidential);
    expect(textOf(page.html)).to.include(WORKS).and.include('allows no retry');
    expect(answersOf(page)[4]?.error).to.equal('invalid_grant');
  });
});

describe('the form of the test of a client', () => {
  let service: TestService;
  let seeded: Seed;
  let client: TestClient;
  before(async () => {
    service = await startTestService();
    seeded = await seed(service);
    client = seeded.clients.confidential;
  });
  after(() => service.close());

  it('says on the form what is wrong with a secret, and begins nothing', async () => {
    const browser = await testBrowser(service, seeded.other);
    const ending = client.secret?.slice(-4);
    for (const [secret, message] of [
      ['', 'Paste a secret of this client.'],
      [`${client.secret}\0`, `The ones that are good end in ${ending}.`],
      [seeded.clients.otherConfidential.secret ?? '', 'This is not a secret of this client.'],
    ] as const) {
      const page = await browser.send(testPath(client.id), { client_secret: secret });
      expect(page.status).to.equal(422);
      expect(textOf(page.html)).to.include(message);
      expect(page.html).to.include('aria-describedby="client-secret-hint client-secret-problem"');
      if (secret !== '') expect(page.html).not.to.include(secret);
    }
  });

  it('takes no form from elsewhere', async () => {
    const browser = await testBrowser(service, seeded.other);
    const fields = { client_secret: client.secret ?? '' };
    const path = testPath(client.id);
    expect((await browser.post(path, fields)).status).to.equal(403);
    const crossSite = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
    expect((await browser.send(path, fields, crossSite)).status).to.equal(403);
  });

  it('another person’s client, and one that sends nobody here, are 404', async () => {
    const stranger = await testBrowser(service, seeded.person);
    const owner = await testBrowser(service, seeded.other);
    const { client: machine } = await service.clients.add({
      ...{ kind: 'machine', name: 'Night', redirectUris: [], isNative: false },
      ownerAccountId: seeded.other.accountId,
    });
    for (const [browser, id] of [
      [stranger, client.id],
      [owner, seeded.clients.otherConfidential.id],
      [owner, machine.id],
    ] as const) {
      const fields = { client_secret: client.secret ?? '' };
      expect((await browser.get(testPath(id))).status).to.equal(404);
      expect((await browser.send(testPath(id), fields)).status).to.equal(404);
    }
  });

  it('a suspended client has no test', async () => {
    const browser = await testBrowser(service, seeded.other);
    await service.clients.suspend(client.id);
    const page = await browser.get(`/profile/oauth-clients/${client.id}`);
    expect(page.html).not.to.include(CALLBACK).and.not.include(testPath(client.id));
    const sent = await browser.send(testPath(client.id), { client_secret: client.secret ?? '' });
    expect(sent.status).to.equal(422);
    expect(textOf(sent.html)).to.include('This client is suspended');
    await service.clients.resume(client.id);
  });
});

/** `Refresh: as it should be`, of each step. */
const titlesOf = ({ html }: Page): string[] =>
  [...html.matchAll(/<li>\s*<h2>([^<]*) <span[^>]*>([^<]*)</g)].map(
    ([, title, verdict]) => `${title}: ${verdict}`,
  );

/** The JSON of each answer; an empty object where there is none. */
const answersOf = ({ html }: Page): Record<string, unknown>[] =>
  [...html.matchAll(/<pre class="listing answer"><code>([^<]*)</g)].map(([, text = '']) => {
    const json = text.replaceAll('&#34;', '"').slice(text.indexOf('\n\n'));
    return json.trim().startsWith('{') ? JSON.parse(json) : {};
  });
