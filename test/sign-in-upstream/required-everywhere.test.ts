/** sign_in.require: every request a session could still use after the end of the grace period. */
import { expect } from 'chai';
import { CALLBACK, type TestBrowser, testBrowser } from '../pages/oauth-clients/test-browser.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { authorizationUrl, introspect, type TestClient } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addPerson, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startWithUpstream } from './service.ts';

/** Seconds of the grace period: shorter than everything that waits for a user, such as a client test or a sign-in. */
const GRACE_SECONDS = 120;
const IDLE_SECONDS = 3_600;
const STRONG_SIGN_IN = '/profile/stronger-sign-in';
/** The routes that a user without a passkey or provider needs to add one. */
const ALLOWED = [
  'GET /profile/stronger-sign-in',
  'GET /profile/security/ways',
  'POST /profile/security/ways',
  'GET /profile/security/passkeys/new',
  'POST /profile/security/passkeys/new',
  'GET /passkey-options/add',
];
/** Routes that need no session, or that sign in and out. */
const PUBLIC =
  /^(GET \/passkey-options\/sign-in|(GET|OPTIONS) \/\.well-known\/|(GET|POST|OPTIONS) \/(login|logout|language|password|forgot-password|errors|openapi.json|assets|favicon.ico|apple-touch-icon.png|oauth|interaction|$))/;

describe('a password session after the grace period', () => {
  const on = startWithUpstream({
    settings: {
      sessions: { idleSeconds: IDLE_SECONDS },
      signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS },
    },
  });
  let owner: SeededPerson;
  let client: Required<TestClient>;
  /** A browser signed in with the password before the end of the grace period. */
  let person: TestBrowser;
  let people = 0;

  beforeEach('the owner of a client, which they have connected', async () => {
    people += 1;
    owner = await addPerson(on.service, 'Olga Owner', `olga-${people}@example.test`);
    const added = await on.service.clients.add({
      kind: 'confidential',
      name: 'Own Client',
      isNative: false,
      redirectUris: [REDIRECT_URI],
      ownerAccountId: owner.accountId,
    });
    client = { id: added.client.id, secret: added.secret ?? '', redirectUri: REDIRECT_URI };
    person = await testBrowser(on.service, owner);
    await person.authorize(ask(), owner);
  });

  const ask = (more = {}) => authorizationUrl(on.service.issuer, client, more);
  const endGrace = (): void => on.clock.advance(GRACE_SECONDS);

  it('what a password session began before the end gives nothing after it: no code, page or language', async () => {
    const { issuer, settings } = on.service;
    const open = (more: object) => person.open(ask(more));
    const consent = await open({ prompt: 'consent' });
    const approver = await signedInAgain();
    const answered = await approver.submit(await approver.open(ask({ prompt: 'consent' })), { decision: 'approve' });
    const stranger = createPerson(issuer);
    const { email, password } = owner;
    const signedIn = await stranger.submit(await stranger.open(ask()), { email, password });
    const test = await person.begin(client);
    const tester = await testBrowser(on.service, owner);
    const tested = await tester.submit(await tester.open(await tester.begin(client)), { decision: 'approve' });
    // The stored answer to a form.
    const path = '/profile/oauth-clients/new';
    const form = { form_token: fieldOf(await person.get(path), 'form_token'), name: '' };
    const { host } = new URL(issuer);
    const sent = { host, origin: issuer, cookie: person.cookieHeader(path), 'sec-fetch-mode': 'navigate' };
    const { headers } = await rawRequest(settings.server.port, path, { headers: sent, form });
    const cookie = `${person.cookieHeader(path)}; ${headers.getSetCookie()[0]?.split(';')[0]}`;
    const answer = () => createPerson(issuer).get(headers.get('location') ?? '', { cookie });
    expect((await answer()).status).to.equal(422);
    const choose = async (language: string) => person.submit(await person.get('/language'), { language });
    await choose('de');
    const key = { accountId: owner.accountId, name: 'Export', expiresInDays: undefined };
    const { value } = await on.service.apiKeys.add(key, { address: '127.0.0.1', browser: '' });

    endGrace();
    for (const [what, use] of Object.entries({
      'a new request': () => open({}),
      'an approval of before': () => approver.follow(answered),
      'an approval on a page of before': () => person.submit(consent, { decision: 'approve' }),
      'a sign-in of before': () => stranger.follow(signedIn),
      'a test of the own client': () => person.open(test),
      'an approved test': () => tester.follow(tested),
      'where a test comes back to': () => person.get(`${CALLBACK}?code=x&state=y`),
      'the answer to a form': answer,
    })) {
      const { location, url, html } = await use();
      expect((location ?? url).pathname, `${what} ${html}`).to.equal(STRONG_SIGN_IN);
    }
    await choose('en');
    expect((await on.service.accounts.find(owner.accountId))?.language).to.equal('de');
    const { body } = await introspect(issuer, on.seeded.clients.resourceServer, value);
    expect(body.active, 'the API key of before').to.equal(true);
  });

  it('a user with a password session is asked for the passkey during an authorization, which then continues', async () => {
    const other = createPerson(on.service.issuer);
    await other.signIn(owner);
    const { passkey } = await addPasskey(on.service.issuer, other);
    endGrace();
    const page = await person.follow(await person.get(ask()));
    expect(page.url.pathname).to.match(/^\/interaction\//);
    expect(page.html).to.include('no longer enough for you: sign in with the passkey <bdi>Laptop</bdi>');
    const answer = passkey.answer(await optionsFor(person, 'sign-in'));
    expect(await outcomeOf(person, await person.submit(page, { passkey: answer }))).to.equal('code');
    expect((await person.get('/profile')).status).to.equal(200);
  });

  it('a password session reaches no page and sends no form, except to add a first strong sign-in method', async () => {
    endGrace();
    const token = fieldOf(await person.get('/errors'), 'form_token');
    const open: string[] = [];
    for (const { method, path } of on.service.routes()) {
      const name = `${method} ${path}`;
      if (PUBLIC.test(name)) continue;
      const url = path.replace(':id', client.id).replace(/:\w+/g, 'x');
      const page = method === 'GET' ? await person.get(url) : await person.post(url, { form_token: token });
      if (page.location?.pathname !== STRONG_SIGN_IN || path === STRONG_SIGN_IN) open.push(name);
    }
    expect(open).to.have.members(ALLOWED);
  });

  it('a password session cannot link a provider, even if the link was already started', async () => {
    const browser = on.traveller();
    await browser.signIn(owner);
    const there = await browser.submit(await browser.get('/profile/security'), {
      link_with: 'platform',
    });
    const { passkey } = await addPasskey(on.service.issuer, await signedInAgain());
    endGrace();
    on.upstream.account = { sub: `olga-at-the-platform-${people}` };
    expect((await browser.travel(there)).status).to.equal(403);
    const own = createPerson(on.service.issuer);
    await signInWith(own, passkey);
    expect((await own.get('/profile/security')).html).to.include('value="platform"');
    expect(await on.service.identities.listOf(owner.accountId)).to.deep.equal([]);
  });

  const signedInAgain = async (): Promise<Person> => {
    const again = createPerson(on.service.issuer);
    await again.signIn(owner);
    return again;
  };

  it('requests of a password session fail while the grace period cannot be read; a passkey session needs no query', async () => {
    const other = await signedInAgain();
    await addPasskey(on.service.issuer, other);
    endGrace();
    const { database } = on.service;
    // Rename the column, so that a request that reads it fails with 503.
    await database.query('ALTER TABLE accounts RENAME COLUMN grace_began_at TO away');
    try {
      expect((await other.get('/profile')).status).to.equal(200);
      expect(await outcomeOf(other, ask({ prompt: 'none' }))).to.equal('code');
      expect((await other.post('/oauth/token/refresh', {})).status).to.equal(200);
      expect((await person.get('/profile')).status).to.be.at.least(500);
    } finally {
      await database.query('ALTER TABLE accounts RENAME COLUMN away TO grace_began_at');
    }
  });
});
