/** sign_in.require: every request a session could still use after the end of the grace period. */
import { expect } from 'chai';
import { CALLBACK, type TestBrowser, testBrowser } from '../pages/oauth-clients/test-browser.ts';
import { addPasskey, optionsFor, signInWith } from '../pages/passkeys/soft-passkey.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
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
  const expectBlocked = ({ location, url, html }: Page, about = ''): void => {
    expect((location ?? url).pathname, `${about} ${html}`).to.equal(STRONG_SIGN_IN);
  };

  it('a password session gets no code by choosing its account after the grace period ended', async () => {
    const choice = await person.follow(await person.get(ask({ prompt: 'select_account' })));
    expect(choice.html).to.include('value="continue"');
    endGrace();
    expectBlocked(await person.follow(await person.submit(choice, { decision: 'continue' })));
    expectBlocked(await person.follow(await person.get(ask({ prompt: 'select_account' }))));
  });

  it('a password session gets no code from a page that was opened before the grace period ended', async () => {
    const open = async () => person.follow(await person.get(ask({ prompt: 'consent' })));
    const [first, second] = [await open(), await open()];
    const answered = await person.submit(first, { decision: 'approve' });
    const stranger = createPerson(on.service.issuer);
    const signIn = await stranger.follow(await stranger.get(ask()));
    const { email, password } = owner;
    const signedIn = await stranger.submit(signIn, { email, password });
    endGrace();
    expectBlocked(await person.follow(answered), 'answered before');
    expectBlocked(await person.submit(second, { decision: 'approve' }), 'answered after');
    expectBlocked(await stranger.follow(signedIn), 'signed in before');
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

  it("a password session gets no code in a test of the user's own client", async () => {
    const request = await person.begin(client);
    const approved = await person.submit(await person.follow(await person.get(await person.begin(client))), {
      decision: 'approve',
    });
    endGrace();
    expectBlocked(await person.follow(await person.get(request)), 'a test of before');
    expectBlocked(await person.follow(approved), 'one that was approved before');
    expectBlocked(await person.get(`${CALLBACK}?code=x&state=y`), 'where it comes back to');
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

  it('a password session does not change the language of the account', async () => {
    const languageOf = async () => (await on.service.accounts.find(owner.accountId))?.language;
    const form = await person.get('/language');
    await person.submit(form, { language: 'de' });
    expect(await languageOf()).to.equal('de');
    endGrace();
    await person.submit(await person.get('/language'), { language: 'en' });
    expect(await languageOf()).to.equal('de');
  });

  it('a password session cannot open a stored form result', async () => {
    const path = '/profile/oauth-clients/new';
    const token = fieldOf(await person.get(path), 'form_token');
    const { headers } = await rawRequest(on.service.settings.server.port, path, {
      headers: {
        host: new URL(on.service.issuer).host,
        origin: on.service.issuer,
        cookie: person.cookieHeader(path),
        'sec-fetch-mode': 'navigate',
      },
      form: { form_token: token, name: '' },
    });
    const resultPath = headers.get('location') ?? '';
    const [browser = ''] = headers.getSetCookie().map((line) => line.split(';')[0]);
    const cookie = `${person.cookieHeader(path)}; ${browser}`;
    const answer = () => createPerson(on.service.issuer).get(resultPath, { cookie });
    expect((await answer()).status).to.equal(422);
    endGrace();
    expectBlocked(await answer());
  });

  it("a password session loses its event stream of a client's requests", async () => {
    const path = `/profile/oauth-clients/${client.id}/requests`;
    const headers = { accept: 'text/event-stream', cookie: person.cookieHeader(path) };
    const stream = await fetch(on.service.issuer + path, { headers, redirect: 'manual' });
    expect(stream.status).to.equal(200);
    endGrace();
    // The stream ends at the next keep-alive comment.
    expect(await stream.text()).to.include('event: over');
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
