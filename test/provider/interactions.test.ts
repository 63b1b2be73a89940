/** Sign-in, consent and forms with several tabs, repeated clicks, other users, expiry, and sessions that end meanwhile. */
import { expect } from 'chai';
import type { Queries } from '../../src/storage/queries.ts';
import { said } from '../pages/client-owner.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { untilOneWaits } from '../support/databases.ts';
import { authorizationUrl, type Parameters } from '../support/oauth.ts';
import { type Credentials, createPerson, type Fields, type Page, type Person } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

describe('an authorization request can be answered once, only in the browser that started it', () => {
  const on = startSeeded({ clock: true });

  /** A request that asks for consent, even if the client was approved before. */
  function request(parameters: Parameters = {}): URL {
    const { confidential } = on.clients;
    return authorizationUrl(on.issuer, confidential, { prompt: 'consent', ...parameters });
  }

  const signInAs = (credentials: Credentials) => signedIn(on.service, credentials);

  /** Opens a request. @returns the page that it reaches */
  const pageFor = async (person: Person, parameters?: Parameters): Promise<Page> => person.open(request(parameters));

  /** Sends a form, and follows redirects to the next page or the client. */
  const answer = async (person: Person, page: Page, fields: Record<string, string>): Promise<Page> =>
    person.follow(await person.submit(page, fields));

  const credentialsOf = ({ email, password }: Credentials) => ({ email, password });

  function expectGone(page: Page): void {
    expect(page.status).to.equal(410);
    expect(page.location).to.equal(undefined);
    expect(page.html).to.include(said('errors.request-closed-heading')).and.include('href="/profile"');
  }

  /** Returns the link of the page that starts the request again. */
  function restartOf(page: Page): URL {
    const [, href = ''] = /href="(\/oauth\/authorize\?[^"]*)"/.exec(page.html) ?? [];
    return new URL(href.replaceAll('&amp;', '&'), on.issuer);
  }

  async function expectSignedIn(person: Person, { email }: Credentials): Promise<void> {
    const profile = await person.get('/profile');
    expect(profile.status).to.equal(200);
    expect(profile.html).to.include(email);
  }

  it('two authorization requests in one browser each return their own state', async () => {
    const person = createPerson(on.issuer);
    const first = await pageFor(person, { state: 'first' });
    const second = await pageFor(person, { state: 'second' });
    const credentials = credentialsOf(on.seeded.person);
    const secondConsent = await answer(person, second, credentials);
    const firstConsent = await answer(person, first, credentials);
    const answers = [
      answerIn(await answer(person, firstConsent, { decision: 'approve' })),
      answerIn(await answer(person, secondConsent, { decision: 'approve' })),
    ];
    expect(answers.map(({ state }) => state)).to.deep.equal(['first', 'second']);
    expect(new Set(answers.map(({ code }) => code)).size).to.equal(2);
  });

  it('an answered authorization request cannot be answered, reloaded or resumed again', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const approved = await person.submit(consent, { decision: 'approve' });
    expect(await outcomeOf(person, approved)).to.equal('code');

    const again = [
      await person.submit(consent, { decision: 'approve' }),
      await person.submit(consent, { decision: 'deny' }),
      await person.get(consent.url),
      await person.get(approved.location ?? ''),
    ];
    // The name of the record that marks the request as answered must not work as an interaction.
    for (const url of [`${consent.url}-answered`, `${approved.location}-answered`]) {
      expectGone(await person.get(url));
    }
    for (const page of again) {
      expectGone(page);
      expect(await outcomeOf(person, restartOf(page))).to.equal('consent');
    }
  });

  it('a second click on Sign in gets a page with a link to the consent page', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    expect(await outcomeOf(person, consent)).to.equal('consent');
    const again = await answer(person, signIn, credentialsOf(on.seeded.person));
    expectGone(again);
    expect(await outcomeOf(person, restartOf(again))).to.equal('consent');
  });

  it('an authorization request can be answered only in the browser that started it', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const thief = await signInAs(on.seeded.other);
    expectGone(await thief.get(consent.url));
    const own = await pageFor(thief);
    const fields = { form_token: fieldOf(own, 'form_token'), decision: 'approve' };
    expectGone(await thief.post(consent.url, fields));

    const approved = await person.submit(consent, { decision: 'approve' });
    expectGone(await thief.get(approved.location ?? ''));
    expect(await outcomeOf(person, approved)).to.equal('code');
  });

  it('the cookies of one authorization request do not open the page of another', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    const headers = { cookie: person.cookieHeader(consent.url.pathname) };
    const browser = createPerson(on.issuer);
    expect((await browser.get(consent.url, headers)).status).to.equal(200);
    expectGone(await browser.get(`/interaction/${'x'.repeat(43)}`, headers));
  });

  it('an authorization request expires after an hour', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person);
    on.clock.advance(3_599);
    expect((await person.get(consent.url)).status).to.equal(200);
    on.clock.advance(1);
    expectGone(await person.get(consent.url));
    expectGone(await person.submit(consent, { decision: 'approve' }));
  });

  it('"Not you?" ends the session and asks for a sign-in, for the same authorization request', async () => {
    const person = await signInAs(on.seeded.person);
    const consent = await pageFor(person, { state: 'mine' });
    const signIn = await answer(person, consent, { decision: 'switch-account' });
    expect(await outcomeOf(person, '/profile')).to.equal('sign-in');
    const other = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(other.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, other, { decision: 'approve' })).state).to.equal('mine');
    await expectSignedIn(person, on.seeded.other);
  });

  it('a sign-in gives the session a new identifier, which an approval does not change', async () => {
    const person = await signInAs(on.seeded.person);
    const identifier = () => /gate_session=([^;]+)/.exec(person.cookieHeader('/'))?.[1];
    const signIn = await pageFor(person, { prompt: 'login consent' });
    const before = identifier();
    const consent = await answer(person, signIn, credentialsOf(on.seeded.person));
    const afterSignIn = identifier();
    await answer(person, consent, { decision: 'approve' });
    expect(afterSignIn).to.be.a('string').and.not.equal(before);
    expect(identifier()).to.equal(afterSignIn);
  });

  it('a sign-in page left open accepts a different user after a sign-in in another tab', async () => {
    const person = createPerson(on.issuer);
    const signIn = await pageFor(person, { state: 'mine' });
    await person.signIn(on.seeded.person);
    const consent = await answer(person, signIn, credentialsOf(on.seeded.other));
    expect(consent.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    expect(answerIn(await answer(person, consent, { decision: 'approve' })).state).to.equal('mine');
  });

  it('a consent page left open cannot be answered by another user who signed in since', async () => {
    const client = on.clients.otherConfidential;
    const person = await signInAs(on.seeded.person);
    const url = authorizationUrl(on.issuer, client);
    const consent = await person.open(url);
    await person.submit(await person.get('/logout'), {});
    await person.signIn(on.seeded.other);

    for (const decision of ['approve', 'deny', 'switch-account']) {
      const refused = await person.submit(consent, { decision });
      expect(refused.status).to.equal(409);
      expect(refused.html).to.include(`You are now signed in as <bdi>${on.seeded.other.name}</bdi>`);
      const asked = await person.open(restartOf(refused));
      expect(asked.html).to.include(on.seeded.other.email).and.not.include(on.seeded.person.email);
    }
    for (const { accountId } of [on.seeded.person, on.seeded.other]) {
      expect(await on.service.connections.find(accountId, client.id)).to.equal(undefined);
    }
  });

  it('a consent page can be answered only with the session cookie; cookies of the interaction do not suffice', async () => {
    const person = await signInAs(on.seeded.person);
    const request = authorizationUrl(on.issuer, on.clients.otherConfidential);
    const consent = await person.open(request);
    const session = person.cookieHeader('/profile').split('; ');
    const others = person
      .cookieHeader(consent.url.pathname)
      .split('; ')
      .filter((cookie) => !session.includes(cookie) || cookie.startsWith('gate_form'));
    const cookie = others.join('; ');
    expect((await createPerson(on.issuer).get(consent.url, { cookie })).status).to.equal(410);
    const fields = { form_token: fieldOf(consent, 'form_token'), decision: 'approve' };
    const sent = await createPerson(on.issuer).post(consent.url, fields, { cookie });
    expect(sent.status).to.equal(410);
    const { accountId } = on.seeded.person;
    const { id } = on.clients.otherConfidential;
    expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
  });

  for (const removed of ['https://removed.example/callback', `${REDIRECT_URI}-removed`]) {
    it(`neither Approve nor Deny uses ${removed}, which was removed while the consent page was open`, async () => {
      const person = await signInAs(on.seeded.person);
      const redirectUris = [removed, REDIRECT_URI];
      const client = await addTestClient(on.service, 'Two Doors', { redirectUris });
      const url = authorizationUrl(on.issuer, client);
      const clicked: Page[] = [];
      const open: Page[] = [];
      for (const decision of ['approve', 'deny']) {
        open.push(await person.open(url));
        clicked.push(await person.submit(await person.open(url), { decision }));
      }
      await on.service.clients.edit(client.id, { name: 'Two Doors', redirectUris: [REDIRECT_URI] });
      const decisions = ['approve', 'deny'];
      for (const page of open) clicked.push(await person.submit(page, { decision: decisions.shift() ?? '' }));
      for (const click of clicked) {
        const sent = await person.follow(click);
        expect(sent.location).to.equal(undefined);
        expect(sent.status).to.equal(400);
        expect(sent.html).to.include('This app’s return address is not registered');
      }
    });
  }

  it('requests with the cookie of a session that was signed out elsewhere do not prolong its stored record', async () => {
    const { database, sessionList, store } = on.service;
    await database.query('DELETE FROM browser_sessions');
    const person = await signInAs(on.seeded.person);
    const [{ uid = '' } = {}] = await database.query<{ uid: string }>('SELECT uid FROM browser_sessions');
    const authorize = authorizationUrl(on.issuer, on.clients.confidential, { prompt: 'none' });
    const expiry = async () => (await store.readSessionByUid(uid))?.expiresAt;
    const askAll = async () => {
      on.clock.advance(60);
      for (const path of [authorize, '/profile', '/login']) await person.get(path);
      await person.post('/oauth/token/refresh', {});
      return expiry();
    };
    const before = await expiry();
    const used = await askAll();
    expect(used).to.be.above(before ?? 0);
    await sessionList.end(on.seeded.person.accountId, uid, async () => {});
    expect(await askAll()).to.equal(used);
  });
});

describeOn([postgresServer], 'a sign-in and forms in flight', () => {
  const on = startSeeded({ on: 'postgres' });

  it('a sign-in whose request ended during the password check is not recorded', async () => {
    const { person } = on.seeded;
    const { database, store } = on.service;
    const browser = createPerson(on.issuer);
    const asked = await browser.open(authorizationUrl(on.issuer, on.clients.confidential));
    const { submitted } = await database.transaction(async (tx) => {
      await tx.query('LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE');
      const submitted = browser.submit(asked, { email: person.email, password: person.password });
      await untilOneWaits(database, 'password_hash AS hash FROM accounts');
      await store.remove('interaction', asked.url.pathname.split('/').at(-1) ?? '');
      return { submitted };
    });
    expect((await submitted).location?.pathname).to.equal(asked.url.pathname);
    const records = await on.service.activity.of(person.accountId, { limit: 5 });
    expect(records.map(({ action }) => action)).to.not.include('signed_in');
  });

  /** Makes the change in a transaction, sends the request, and commits once the request waits for a lock. */
  async function duringChange(request: () => Promise<Page>, change: (tx: Queries) => Promise<unknown>): Promise<Page> {
    const { sent } = await on.service.database.transaction(async (tx) => {
      await change(tx);
      const sent = request();
      await untilOneWaits(on.service.database);
      return { sent };
    });
    return sent;
  }

  it('a form for a client changes only its own fields, and keeps concurrent changes of other fields', async () => {
    const { clients } = on.service;
    const owner = on.seeded.person;
    const client = await addTestClient(on.service, 'Ours', { ownerAccountId: owner.accountId });
    const person = await signedIn(on.service, owner);
    const path = `/profile/oauth-clients/${client.id}/links`;
    const form_token = fieldOf(await person.get('/errors'), 'form_token');
    const fields = { homepage_url: 'https://ours.example/', form_token };
    const { status } = await duringChange(
      () => person.send(path, fields),
      (tx) =>
        tx.query("UPDATE clients SET name = 'Yours', redirect_uris = $2 WHERE id = $1", [
          client.id,
          ['https://other.example/'],
        ]),
    );
    expect(status).to.equal(303);
    const { name, redirectUris, links } = (await clients.find(client.id)) ?? {};
    expect({ name, redirectUris, links }).to.deep.equal({
      name: 'Yours',
      redirectUris: ['https://other.example/'],
      links: { homepage: 'https://ours.example/' },
    });
  });

  it('a form sent after its session ended saves nothing, asks for a sign-in and keeps the values as a draft', async () => {
    const { clients, apiKeys } = on.service;
    const owner = on.seeded.person;
    const client = await addTestClient(on.service, 'Mine', { ownerAccountId: owner.accountId });
    const own = `/profile/oauth-clients/${client.id}`;
    const forms: readonly (readonly [path: string, fields: Fields])[] = [
      ['/profile/api-keys', { name: 'Left behind', expires_in_days: '30' }],
      ['/profile/oauth-clients/new', { name: 'Left behind', redirect_uris: REDIRECT_URI }],
      [`${own}/settings`, { name: 'Left behind', redirect_uris: REDIRECT_URI }],
      [`${own}/links`, { homepage_url: 'https://left.example/' }],
      [`${own}/rotate-secret`, {}],
    ];
    for (const [path, fields] of forms) {
      const person = await signedIn(on.service, owner);
      const form_token = fieldOf(await person.get('/errors'), 'form_token');
      const sent = await duringChange(
        () => person.send(path, { ...fields, form_token }),
        async (tx) => {
          await tx.query('SELECT FROM clients WHERE id = $1 FOR UPDATE', [client.id]);
          await tx.query('UPDATE accounts SET session_generation = session_generation + 1 WHERE id = $1', [
            owner.accountId,
          ]);
        },
      );
      const { status, location } = sent;
      expect(status, path).to.equal(303);
      expect(location?.pathname, path).to.equal('/login');
      const hasDraft = Object.keys(fields).length > 0;
      expect(/[?&]form=/.test(decodeURIComponent(location?.search ?? '')), path).to.equal(hasDraft);
    }
    expect(await apiKeys.listOf(owner.accountId)).to.deep.equal([]);
    const owned = await clients.listByOwner(owner.accountId);
    expect(owned.map(({ name }) => name)).to.have.members(['Mine', 'Yours']);
    expect(owned.map(({ secrets }) => secrets.length)).to.deep.equal([1, 1]);
    expect((await clients.find(client.id))?.links).to.deep.equal({});
  });
});
