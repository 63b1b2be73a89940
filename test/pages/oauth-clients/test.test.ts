/** `/profile/oauth-clients/:id/test`: runs the authorization flow and leaves no connection. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { listen } from '../../../examples/sandbox/listening.ts';
import { createOneTimeValues } from '../../../src/accounts/one-time-values.ts';
import { message } from '../../../src/base/message.ts';
import type { ClientKind } from '../../../src/clients/client.ts';
import { createApiCalls } from '../../../src/host/api-calls.ts';
import { counted, scrape } from '../../support/metrics.ts';
import { authorizationUrl, exchangeCode, introspect, type TestClient } from '../../support/oauth.ts';
import type { Page } from '../../support/person.ts';
import { addTestClient } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { textOf } from '../client-owner.ts';
import { CALLBACK, type TestBrowser, testBrowser, testPath } from './test-browser.ts';

const WORKS = 'This client works.';

describe('the test of a client', () => {
  const on = startSeeded({ clock: true });
  let browser: TestBrowser;
  let stranger: TestBrowser;
  let client: TestClient;

  before(async () => {
    browser = await testBrowser(on.service, on.seeded.other);
    stranger = await testBrowser(on.service, on.seeded.person);
    client = on.clients.confidential;
  });

  it('the test of a client runs the whole flow over HTTP and shows each request with its answer', async () => {
    const page = await browser.run(client);
    expect(page.status).to.equal(200);
    expect(textOf(page.html)).to.include(WORKS);
    expect(titlesOf(page)).to.deep.equal([
      'Authorization request: OK',
      'Exchange the code: OK',
      'Introspect the access token: OK',
      'Refresh: OK',
      'Refresh with the old token again: OK',
      'Refresh a second time: OK',
      'Refresh with the first refresh token: OK',
      'Introspect again: OK',
      'Revoke: OK',
    ]);
    const [, exchange, , refresh, again, , replay] = answersOf(page);
    expect(exchange).to.include({ expires_in: 3600, token_type: 'Bearer' });
    expect(again?.refresh_token).to.equal(refresh?.refresh_token);
    expect(again?.refresh_token).not.to.equal(exchange?.refresh_token);
    expect(again?.access_token).not.to.equal(refresh?.access_token);
    expect(replay?.error_description).to.include('an earlier refresh token was sent');
    // The replay of a test is no problem of the client, and alerts no operator.
    expect(await on.service.clientRequests.groups(client.id)).to.deep.equal([]);
    expect(counted(await scrape(on.service), 'gatehouse_replays_total')).to.deep.equal({});
    // The page shows the access that introspection reports to the warehouse API.
    expect(textOf(page.html)).to.include(`${on.seeded.elsewhere.name} owner`);
  });

  it('the result of a client test shows no code, token, verifier or secret in full, and none is logged', async () => {
    const { html } = await browser.run(client);
    expect(html).not.to.match(/gate_(?!ci_)[a-z]+_[\w-]{12}/);
    expect(html).to.match(/code_verifier=[\w-]{4}…[\w-]{4}\n/);
    expect(html).not.to.include(client.secret);
    expect(on.service.logLines.join('')).not.to.match(/gate_(?!ci_)[a-z]+_[\w-]{12}/);
  });

  it('a client test creates no connection, and changes no existing connection or its tokens', async () => {
    const { issuer, connections, activity } = on.service;
    const { accountId } = on.seeded.other;
    await browser.run(client);
    expect(await connections.listOf(accountId)).to.deep.equal([]);
    const [latest] = await activity.of(accountId, { limit: 1 });
    expect(latest).to.deep.include({
      action: 'client_tested',
      details: { client_id: client.id, client_name: 'Route Planner' },
    });

    const callback = await browser.authorize(authorizationUrl(issuer, client), on.seeded.other);
    const { body } = await exchangeCode(issuer, client, callback.searchParams.get('code') ?? '');
    const before = await connections.listOf(accountId);
    const approved = await connections.find(accountId, client.id);
    expect(textOf((await browser.run(client)).html)).to.include(WORKS);
    expect(await connections.listOf(accountId)).to.deep.equal(before);
    expect(await connections.find(accountId, client.id)).to.deep.equal(approved);
    const token = await introspect(issuer, client, String(body.access_token));
    expect(token.body.active).to.equal(true);
    await connections.end({ accountId, clientId: client.id }, 'person_disconnected');
  });

  it('a failing API stops the client test, which shows the answer and leaves no connection', async () => {
    const answers: readonly (readonly [(response: ServerResponse) => void, string])[] = [
      [(response) => response.writeHead(302, { location: on.issuer }).end(), '302 Found'],
      [(response) => response.end('{"errors":[{"message":"<b>no"}]}'), '&lt;b&gt;no'],
      // The API never completes this answer.
      [(response) => response.write(`{"data":"${'x'.repeat(40_000)}`), 'x\n…'],
      [(response) => response.destroy(), 'no connection'],
    ];
    for (const [answer, shown] of answers) {
      const api = await listen((_, response) => answer(response), { host: '127.0.0.1', port: 0 });
      const graphqlUrl = `http://127.0.0.1:${api.port}/`;
      await on.service.apply({ ...on.service.settings, api: { graphqlUrl, exampleQuery: '{a}' } });
      const page = await browser.run(client);
      await api.close();
      expect(page.html, shown).to.include(shown);
      expect(page.html.length).to.be.below(60_000);
      // A truncated body counts as success: it cannot be parsed, and its first part reports no
      // error.
      expect(textOf(page.html).includes(WORKS), shown).to.equal(shown === 'x\n…');
    }
    await on.service.apply(on.service.settings);
    expect(await on.service.connections.listOf(on.seeded.other.accountId)).to.deep.equal([]);
  });

  it('a client test stops waiting for an API that does not answer in time', async () => {
    const api = await listen((_, response) => response.write('{'), { host: '127.0.0.1', port: 0 });
    const graphqlUrl = `http://127.0.0.1:${api.port}/`;
    const answer = await createApiCalls({ graphqlUrl, exampleQuery: '{a}' }, 50)('token');
    expect(answer).to.deep.equal({ failure: message('client-test.api-slow') });
    await api.close();
  });

  it('denying in a client test shows what the client receives, and no token is issued', async () => {
    const page = await browser.run(client, 'deny');
    expect(textOf(page.html)).to.include('You denied the request, so nothing was issued.');
    expect(page.html).to.include('error=access_denied');
    expect(titlesOf(page)).to.deep.equal(['Authorization request: OK']);
  });

  it('the result of a client test is shown only to the owner, on the page of the client, for five minutes', async () => {
    const { url } = await browser.run(client);
    expect(textOf((await browser.get(url)).html)).to.include(WORKS);
    const another = await add('confidential');
    const elsewhere = await browser.get(testPath(another.id) + url.search);
    expect(textOf(elsewhere.html)).to.include('this one is gone');
    expect(elsewhere.html).not.to.include('grant_type');
    expect((await stranger.get(url)).status).to.equal(404);
    on.clock.advance(301);
    expect(textOf((await browser.get(url)).html)).to.include('this one is gone');
  });

  it('a result with a text that only a later version knows counts as gone', async () => {
    const values = createOneTimeValues({ store: on.service.store, clock: on.clock.clock });
    const { url } = await browser.run(client);
    const { accountId } = on.seeded.other;
    const name = url.searchParams.get('run') ?? '';
    const kept = await values.peek<{ steps: { verdict: object }[] }>(accountId, name);
    const [first] = kept?.steps ?? [];
    const later = { ...kept, steps: [{ ...first, verdict: message('client-test.shows-of-tomorrow') }] };
    await values.store(accountId, later, name);
    const page = await browser.get(url);
    expect(page.status).to.equal(200);
    expect(textOf(page.html)).to.include('this one is gone');
  });

  it('a client test whose secret is removed meanwhile stops and shows the cause', async () => {
    const another = await add('confidential');
    const callback = await browser.decide(await browser.begin(another));
    const [first] = (await on.service.clients.find(another.id))?.secrets ?? [];
    await on.service.clients.addSecret(another.id);
    await on.service.clients.removeSecret(another.id, first?.id ?? '');
    const page = await browser.follow(await browser.get(callback));
    expect(titlesOf(page).at(-1)).to.equal('Exchange the code: refused');
    expect(textOf(page.html)).to.include('Refused as invalid_client');
  });

  it('a public client can be tested without a secret', async () => {
    const page = await browser.run(await add('public'));
    expect(textOf(page.html)).to.include(WORKS);
    expect(titlesOf(page)).to.have.length(7);
  });

  it('an invalid client secret is explained on the form, and no test starts', async () => {
    const ending = client.secret?.slice(-4);
    for (const [secret, message] of [
      ['', 'Paste a secret of this client.'],
      [`${client.secret}\0`, `The active secrets end in ${ending}.`],
      [on.clients.otherConfidential.secret ?? '', 'This is not a secret of this client.'],
    ] as const) {
      const page = await browser.send(testPath(client.id), { client_secret: secret });
      expect(page.status).to.equal(422);
      expect(textOf(page.html)).to.include(message);
      expect(page.html).to.include('aria-describedby="client-secret-hint client-secret-problem"');
      if (secret !== '') expect(page.html).not.to.include(secret);
    }
  });

  it('a machine client cannot be tested on its page', async () => {
    const machine = await add('machine');
    expect((await browser.get(testPath(machine.id))).status).to.equal(404);
    expect((await browser.send(testPath(machine.id))).status).to.equal(404);
  });

  it('a suspended client cannot be tested on its page', async () => {
    const { id, secret = '' } = await add('confidential');
    const connectPage = async () => (await browser.get(`/profile/oauth-clients/${id}/connect`)).html;
    expect(await connectPage()).to.include(testPath(id));
    await on.service.clients.suspend(id);
    expect(await connectPage())
      .not.to.include(CALLBACK)
      .and.not.include(testPath(id));
    const sent = await browser.send(testPath(id), { client_secret: secret });
    expect(sent.status).to.equal(422);
    expect(textOf(sent.html)).to.include('This client is suspended');
  });

  it('without a retry window, a client test shows that reusing a refresh token ends the authorization', () =>
    on.service.withSettings({ tokens: { retryWindowSeconds: 0 } }, async () => {
      const page = await browser.run(client);
      expect(textOf(page.html)).to.include(WORKS).and.include('allows no retry');
      expect(answersOf(page)[4]?.error).to.equal('invalid_grant');
    }));

  const add = (kind: ClientKind) =>
    addTestClient(on.service, 'Another', { kind, ownerAccountId: on.seeded.other.accountId });
});

/** Returns the title and result of each step, as in `Refresh: as it should be`. */
const titlesOf = ({ html }: Page): string[] =>
  [...html.matchAll(/<details[^>]*>\s*<summary>([^<]*) <span class="change[^>]*>([^<]*)</g)].map(
    ([, title, verdict]) => `${title}: ${verdict}`,
  );

/** Returns the JSON of each answer; an empty object if the answer has none. */
const answersOf = ({ html }: Page): Record<string, unknown>[] =>
  [...html.matchAll(/<pre class="listing answer"><code>([^<]*)</g)].map(([, text = '']) => {
    const json = text.replaceAll('&#34;', '"').slice(text.indexOf('\n\n'));
    return json.trim().startsWith('{') ? JSON.parse(json) : {};
  });
