/** Rules of consent: when users are asked, when an earlier approval counts, and `prompt`. */
import { expect } from 'chai';
import type { ClientKind } from '../../src/clients/client.ts';
import { said } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { changeUnheard } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, type Parameters, pkce, refresh, type TestClient } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

describe('consent policy', () => {
  const on = startSeeded();

  /** The browser of the seeded person, signed in. */
  let browser: Person;

  before(async () => {
    browser = on.partner.browser;
    await browser.signIn(on.seeded.person);
  });

  /** Registers a client that no user has approved. */
  const newClient = (kind: ClientKind = 'confidential'): Promise<TestClient> =>
    addTestClient(on.service, 'Dock Planner', { kind });

  /** Registers a client that the seeded person has approved. */
  async function connectedClient(kind?: ClientKind): Promise<TestClient> {
    const client = await newClient(kind);
    await on.partner.code(client, pkce().parameters);
    return client;
  }

  const request = (client: TestClient, parameters: Parameters = {}): URL =>
    authorizationUrl(on.issuer, client, { ...pkce().parameters, ...parameters });

  /** Returns the outcome of a request of this client, by default in the person's browser. */
  const outcome = (client: TestClient, parameters?: Parameters, who = browser): Promise<string> =>
    outcomeOf(who, request(client, parameters));

  /** Edits the client like another process, and waits until this service has read the change. */
  async function edit(client: TestClient, column: 'name' | 'redirect_uris', value: unknown) {
    const before = await on.service.clients.find(client.id);
    const values = [client.id, value];
    await on.service.database.query(`UPDATE clients SET ${column} = $2 WHERE id = $1`, values);
    await eventually(async () => {
      const now = await on.service.clients.find(client.id);
      expect(now?.version).to.not.equal(before?.version);
    });
  }

  describe('a confidential client needs consent once, and again after certain changes', () => {
    it('a user approves a confidential client once, for all browsers', async () => {
      const client = await newClient();
      expect(await outcome(client)).to.equal('consent');
      await on.partner.code(client);
      expect(await outcome(client)).to.equal('code');
      const elsewhere = await signedIn(on.service, on.seeded.person);
      expect(await outcome(client, {}, elsewhere)).to.equal('code');
    });

    it('after Deny, a new client needs consent again, and a connected client stays approved', async () => {
      const unknown = await newClient();
      const known = await connectedClient();
      for (const [client, then] of [[unknown, 'consent'] as const, [known, 'code'] as const]) {
        const url = request(client, { prompt: 'consent' });
        const redirect = await browser.authorize(url, on.seeded.person, 'deny');
        expect(redirect.searchParams.get('error')).to.equal('access_denied');
        expect(await outcome(client)).to.equal(then);
      }
    });

    async function expectAsksOnce(client: TestClient): Promise<void> {
      expect(await outcome(client, { prompt: 'none' })).to.equal('consent_required');
      expect(await outcome(client)).to.equal('consent');
      await on.partner.code(client);
      expect(await outcome(client)).to.equal('code');
    }

    it('a client needs consent again, once, after its name changed', async () => {
      const client = await connectedClient();
      await edit(client, 'name', 'Dock Planner Pro');
      await expectAsksOnce(client);
    });

    it('a client needs consent again after the hosts of its redirect URIs changed', async () => {
      const client = await connectedClient();
      const path = 'https://partner.example/another/path';
      await edit(client, 'redirect_uris', [REDIRECT_URI, path]);
      expect(await outcome(client)).to.equal('code');
      for (const host of ['https://second.example/', 'https://partner.example:444/']) {
        await edit(client, 'redirect_uris', [REDIRECT_URI, host]);
        await expectAsksOnce(client);
      }
      await edit(client, 'redirect_uris', [REDIRECT_URI]);
      expect(await outcome(client)).to.equal('consent');
    });

    it('after each change of the owner, a client needs consent again, once, even if a former owner gets it back', async () => {
      const client = await connectedClient();
      for (const owner of [on.seeded.other.accountId, undefined, on.seeded.other.accountId]) {
        await on.service.clients.transfer(client.id, owner);
        await expectAsksOnce(client);
      }
    });

    it('a node that does not know a client’s new owner asks for consent again, and does not remember the approval', async () => {
      const client = await connectedClient();
      const before = await on.service.clients.find(client.id);
      const transfer = 'UPDATE clients SET owner_account_id = $2, owned_since = now() WHERE id = $1';
      await changeUnheard(on.service.database, transfer, [client.id, on.seeded.other.accountId]);
      expect(await on.service.clients.find(client.id)).to.equal(before);
      expect(await outcome(client, { prompt: 'none' })).to.equal('consent_required');
      await on.partner.code(client);
      await edit(client, 'redirect_uris', [REDIRECT_URI, 'https://partner.example/more']);
      expect(await outcome(client)).to.equal('consent');
      await on.partner.code(client);
      expect(await outcome(client)).to.equal('code');
    });

    it('a client that is set to always ask needs consent for each request, until that is switched off', async () => {
      const client = await connectedClient();
      await on.service.clients.setAlwaysAsks(client.id, true, 'owner');
      for (let time = 0; time < 2; time += 1) {
        expect(await outcome(client, { prompt: 'none' })).to.equal('consent_required');
        expect(await outcome(client)).to.equal('consent');
        await on.partner.code(client);
      }
      // A sign-in does not take the place of the click.
      const { email, password } = on.seeded.person;
      const page = await browser.open(request(client, { prompt: 'login' }));
      expect(await outcomeOf(browser, await browser.submit(page, { email, password }))).to.equal('consent');
      await on.service.clients.setAlwaysAsks(client.id, false, 'owner');
      expect(await outcome(client)).to.equal('code');
      const { id } = await newClient('public');
      const refused = await on.service.clients.setAlwaysAsks(id, true, 'owner').catch((error: unknown) => error);
      expect(refused).to.include({ code: 'always_ask_unused' });
    });

    it('a node issues no code without a consent page, even if it has not learned yet that the client must always ask', async () => {
      const client = await connectedClient();
      const before = await on.service.clients.find(client.id);
      await changeUnheard(on.service.database, 'UPDATE clients SET always_asks = true WHERE id = $1', [client.id]);
      expect(await on.service.clients.find(client.id)).to.equal(before);
      expect(await outcome(client, { prompt: 'none' })).to.equal('consent_required');
    });

    it('a client that is suspended while the consent page is open gets no code', async () => {
      const client = await newClient();
      const page = await browser.open(request(client));
      await on.service.clients.suspend(client.id);
      expect(await outcome(client)).to.equal('page 400');
      const submitted = await browser.submit(page, { decision: 'approve' });
      expect(await outcomeOf(browser, submitted)).to.equal('page 410');
      await on.service.clients.resume(client.id);
      expect(await outcome(client)).to.equal('consent');
    });
  });

  it('a public client needs consent for every request', async () => {
    const client = await connectedClient('public');
    expect(await outcome(client)).to.equal('consent');
    await on.partner.code(client, pkce().parameters);
    expect(await outcome(client, { prompt: 'none' })).to.equal('consent_required');
  });

  it('prompt=select_account asks for consent, and its page names the account and offers to use another one', async () => {
    const client = await connectedClient();
    const page = await browser.open(request(client, { prompt: 'select_account' }));
    expect(page.html).to.include(on.seeded.person.email).and.include('Not you?');
    const outcomes = {
      'select_account select_account': 'consent',
      'select_account consent': 'consent',
      'select_account login': 'sign-in',
      'none select_account': 'invalid_request',
      select_accounts: 'invalid_request',
    };
    for (const [prompt, expected] of Object.entries(outcomes)) {
      expect(await outcome(client, { prompt }), prompt).to.equal(expected);
    }
  });

  it('prompt=none is answered with a code in one redirect, or with the error that names the missing step', async () => {
    const none = { prompt: 'none' };
    const stranger = createPerson(on.issuer);
    expect(await outcome(await connectedClient(), none, stranger)).to.equal('login_required');
    expect(stranger.cookieNames).to.deep.equal([]);
    expect(await outcome(await newClient(), none)).to.equal('consent_required');
    const answer = answerIn(await browser.get(request(await connectedClient(), none)));
    expect(answer).to.have.all.keys('code', 'state', 'iss');
  });

  it('a client whose owner is suspended gets no new approvals, but its tokens stay valid', async () => {
    const known = on.clients.confidential;
    const tokens = await on.partner.tokens(known);
    const waiting = await browser.open(request(known, { prompt: 'consent' }));
    await on.service.accounts.suspend(on.seeded.other.accountId);
    const page = await browser.open(request(known, { state: 'a b' }));
    expect(page.status).to.equal(403);
    expect(page.html).to.include(said('errors.owner_suspended-heading'));
    const href = page.html.match(/href="(https:[^"]*)"/)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(Object.fromEntries(new URL(href).searchParams)).to.include({
      error: 'unauthorized_client',
      state: 'a b',
      iss: on.issuer,
    });
    expect(await outcome(known, { prompt: 'none' })).to.equal('unauthorized_client');
    expect(await outcome(known, {}, createPerson(on.issuer))).to.equal('page 403');
    const approved = await browser.submit(waiting, { decision: 'approve' });
    expect(await outcomeOf(browser, approved)).to.equal('page 403');
    expect((await refresh(on.issuer, known, tokens.refreshToken)).status).to.equal(200);
    await on.service.accounts.resume(on.seeded.other.accountId);
    expect(await outcome(known)).to.equal('code');
  });

  it('if the service sends no mail, an approved client needs no consent even in an unknown browser', async () => {
    const client = await connectedClient();
    const session = browser.cookieHeader('/oauth/authorize').split('; ');
    const cookie = session.filter((pair) => !pair.startsWith('gate_device=')).join('; ');
    const { location } = await createPerson(on.issuer).get(request(client), { cookie });
    expect(location?.searchParams.has('code')).to.equal(true);
  });
});
