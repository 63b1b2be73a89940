/** The redirect URI of tests is valid for one running test, in the session that started it. */
import { expect } from 'chai';
import { CALLBACK, type TestBrowser, testBrowser, testPath } from '../pages/oauth-clients/test-browser.ts';
import { authorizationUrl, exchangeCode, pkce, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { valuesIn } from '../support/redis-server.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const REFUSED = 'This app’s return address is not registered';

describe('the redirect URI of tests', () => {
  const on = startSeeded({ clock: true });
  let client: TestClient;
  let second: TestClient;
  let owner: TestBrowser;

  before(async () => {
    client = on.clients.confidential;
    second = await addOwned('Second');
    owner = await testBrowser(on.service, on.seeded.other);
  });

  const addOwned = (name: string): Promise<TestClient> =>
    addTestClient(on.service, name, {
      redirectUris: [on.issuer + CALLBACK],
      ownerAccountId: on.seeded.other.accountId,
    });

  async function expectRefused(person: Pick<Person, 'get'>, url: URL | string): Promise<void> {
    const page = await person.get(url);
    expect(page.status, String(url)).to.equal(400);
    expect(page.location).to.equal(undefined);
    expect(page.html).to.include(REFUSED);
  }

  it('the redirect URI of client tests is refused for other users, signed-out users and other browsers', async () => {
    const request = await owner.begin(client);
    await expectRefused(createPerson(on.issuer), request);
    await expectRefused(await testBrowser(on.service, on.seeded.person), request);
    await expectRefused(await testBrowser(on.service, on.seeded.other), request);
    // The owner can still use the request in the browser that started the test.
    expect((await owner.get(request)).location?.pathname).to.match(/^\/interaction\//);
  });

  it('the redirect URI of client tests is refused for any request but that of the started test', async () => {
    const request = await owner.begin(client);
    const other = await owner.begin(second);
    for (const [name, value] of [
      ['client_id', second.id],
      ['client_id', on.clients.otherConfidential.id],
      ['state', 'another-state'],
      ['state', other.searchParams.get('state') ?? ''],
      ['code_challenge', pkce().parameters.code_challenge],
      ['redirect_uri', `${on.issuer}${CALLBACK}/`],
      ['redirect_uri', `${on.issuer}${CALLBACK}?x=1`],
    ] as const) {
      const changed = new URL(request);
      changed.searchParams.set(name, value);
      await expectRefused(owner, changed);
    }
    for (const name of ['code_challenge', 'state']) {
      const changed = new URL(request);
      changed.searchParams.delete(name);
      await expectRefused(owner, changed);
    }
  });

  it('the redirect URI of client tests is refused outside of a test, even if a client has registered it', async () => {
    const registered = { ...second, redirectUri: on.issuer + CALLBACK };
    const request = authorizationUrl(on.issuer, registered, pkce().parameters);
    await expectRefused(owner, request);
    await expectRefused(await testBrowser(on.service, on.seeded.person), request);
  });

  it('the request of a client test is refused once the test finished, after five minutes, or for a new owner', async () => {
    const finished = await owner.begin(client);
    await owner.get(await owner.decide(finished));
    await expectRefused(owner, finished);

    const late = await owner.begin(client);
    on.clock.advance(301);
    await expectRefused(owner, late);

    const lost = await owner.begin(second);
    await on.service.clients.transfer(second.id, on.seeded.person.accountId);
    await expectRefused(owner, lost);
    await on.service.clients.transfer(second.id, on.seeded.other.accountId);
  });

  it('the request of a client test is refused once the owner signed out, here or everywhere, and in again', async () => {
    const browser = await testBrowser(on.service, on.seeded.other);
    const request = await browser.begin(client);
    await on.service.accounts.endSessions(on.seeded.other.accountId);
    await expectRefused(browser, request);

    const next = await testBrowser(on.service, on.seeded.other);
    const started = await next.begin(client);
    await next.send('/logout');
    await expectRefused(next, started);
    await next.signIn(on.seeded.other);
    await expectRefused(next, started);
    owner = await testBrowser(on.service, on.seeded.other);
  });

  it('the request of a client test is refused after "Not you?" on its consent page', async () => {
    const browser = await testBrowser(on.service, on.seeded.other);
    const question = await browser.open(await browser.begin(client));
    const page = await browser.submit(question, { decision: 'switch-account' });
    await expectRefused(browser, page.location ?? '');
  });

  it('a client test always asks the owner for consent, even for a connected client, and saves no approval', async () => {
    const { connections, issuer } = on.service;
    const { accountId } = on.seeded.other;
    await owner.authorize(authorizationUrl(issuer, client), on.seeded.other);
    const before = await connections.listOf(accountId);
    for (let times = 0; times < 2; times += 1) {
      const question = await owner.open(await owner.begin(client));
      expect(question.html).to.include(issuer + CALLBACK);
      await owner.submit(question, { decision: 'approve' });
    }
    expect(await connections.listOf(accountId)).to.deep.equal(before);
    await connections.end({ accountId, clientId: client.id }, 'person_disconnected');
  });

  it('a client test is asked again if everything of the client was ended while its page was open', async () => {
    const question = await owner.open(await owner.begin(client));
    await on.service.clients.revoke(client.id);
    const again = await owner.follow(await owner.submit(question, { decision: 'approve' }));
    expect([again.status, again.url.pathname.split('/')[1]]).to.deep.equal([200, 'interaction']);
    const answered = await owner.follow(await owner.submit(again, { decision: 'approve' }));
    expect(answered.url.pathname).to.equal(testPath(client.id));
  });

  describe('the callback of a test', () => {
    const expectNotFound = (page: Page): void => {
      expect(page.status).to.equal(404);
      expect(page.html).not.to.include('gate_');
    };

    it('the callback of client tests answers 404 without a running test of this session', async () => {
      const callback = await owner.decide(await owner.begin(client));
      const stranger = await testBrowser(on.service, on.seeded.person);
      expectNotFound(await stranger.get(callback));
      expectNotFound(await (await testBrowser(on.service, on.seeded.other)).get(callback));
      const forged = new URL(callback);
      forged.searchParams.set('state', 'another-state');
      expectNotFound(await owner.get(forged));
      forged.searchParams.delete('state');
      expectNotFound(await owner.get(forged));

      const visitor = await createPerson(on.issuer).get(callback);
      expect(visitor.location?.pathname).to.equal('/login');
      // None of these requests consumed the test.
      expect((await owner.get(callback)).location?.pathname).to.equal(testPath(client.id));
    });

    it('the callback of a client test can be used once, and only with GET', async () => {
      const callback = await owner.decide(await owner.begin(client));
      const headers = { cookie: owner.cookieHeader(CALLBACK) };
      const looked = await fetch(callback, { method: 'HEAD', headers });
      expect(looked.status).to.equal(404);
      expect((await owner.send(callback.pathname + callback.search)).status).to.equal(405);
      const answers = await Promise.all([owner.get(callback), owner.get(callback)]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([303, 404]);
      expectNotFound(await owner.get(callback));
    });

    it('the code of a client test can be exchanged only by the test, even if others have the client secret', async () => {
      const callback = await owner.decide(await owner.begin(client));
      const code = callback.searchParams.get('code') ?? '';
      const redirectUri = on.issuer + CALLBACK;
      for (const parameters of [{}, { code_verifier: pkce().verifier }]) {
        const answer = await exchangeCode(on.issuer, client, code, {
          redirect_uri: redirectUri,
          ...parameters,
        });
        expect(answer.body.error).to.equal('invalid_grant');
      }
      // The test itself can still exchange the code.
      expect((await owner.open(callback)).html).to.include('This client works.');
    });

    it('a client test leaves no authorization, whether its code was exchanged or not', async () => {
      const find = (callback: URL) => {
        const [, id = ''] = /code=gate_ac_(.{22})/.exec(callback.search) ?? [];
        return on.service.store.readAuthorization(id);
      };
      const exists = async (callback: URL): Promise<boolean> => (await find(callback)) !== undefined;
      const exchanged = await owner.decide(await owner.begin(client));
      expect(await exists(exchanged)).to.equal(true);
      await owner.get(exchanged);
      expect(await exists(exchanged)).to.equal(false);

      const left = await owner.decide(await owner.begin(client));
      const { authorizationCodeSeconds, accessTokenSeconds } = on.service.settings.tokens;
      const longest = authorizationCodeSeconds + accessTokenSeconds;
      // Check that the authorization expires by itself: a process may crash before it revokes the tokens.
      const { approvedAt = 0, endsAt } = (await find(left)) ?? {};
      expect(endsAt).to.equal(approvedAt + longest);
      on.clock.advance(longest);
      expect(await exists(left)).to.equal(false);
    });

    it('a client test stores no client secret in clear text', async () => {
      await owner.begin(client);
      const rows = await on.service.database.query('SELECT data FROM token_records');
      // Look in both stores: the records are in PostgreSQL or in Redis.
      const kept = JSON.stringify([rows, await valuesIn(on.service.settings.storage.redisUrl)]);
      expect(kept).to.include('accountId').and.not.include(client.secret);
    });
  });
});
