/** Security headers of every answer, refused hosts, and the status of redirects. */
import { expect } from 'chai';
import { authorizationUrl, pkce, postForm } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { type RawAnswer, rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { wordsOf } from '../support/words.ts';

const METADATA = '/.well-known/oauth-authorization-server';

describe('security headers', () => {
  const on = startSeeded();
  let person: Person;

  before(async () => {
    person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
  });

  /** Opens the page of an interaction by an authorization request. */
  async function interactionPage(browser: Person): Promise<Page> {
    const url = authorizationUrl(on.issuer, on.clients.public, pkce().parameters);
    return browser.follow(await browser.get(url));
  }

  it('every page forbids framing, scripts of other origins and caching', async () => {
    const visitor = createPerson(on.issuer);
    const pages = {
      'sign in': await visitor.get('/login'),
      profile: await person.get('/profile'),
      'sign out': await person.get('/logout'),
      'signed out': await visitor.get('/logout'),
      'error reference': await visitor.get('/errors'),
      'one error': await visitor.get('/errors/invalid_grant'),
      missing: await visitor.get('/nothing'),
      'wrong method': await visitor.post('/profile', {}),
      'redirect to sign in': await visitor.get('/profile'),
      'refused form': await visitor.post('/login', {}),
    };
    for (const [name, { headers }] of Object.entries(pages)) {
      expect(headers.get('content-security-policy'), name).to.equal(`${POLICY};form-action 'self'`);
      expect(headers.get('cross-origin-opener-policy'), name).to.equal('same-origin');
      expectPageHeaders(headers, name);
    }
  });

  it('pages that redirect to a client have no form-action in their CSP, and can reach the window that opened them', async () => {
    const visitor = createPerson(on.issuer);
    const pages = {
      'sign in': await interactionPage(visitor),
      consent: await interactionPage(person),
      approved: await person.submit(await interactionPage(person), { decision: 'approve' }),
      refused: await person.submit(await interactionPage(person), { decision: 'deny' }),
      'over or unknown': await visitor.get('/interaction/none'),
      'unknown client': await visitor.get('/oauth/authorize?client_id=none'),
      'refused form': await visitor.post('/interaction/none', {}),
    };
    for (const [name, { headers }] of Object.entries(pages)) {
      expect(headers.get('content-security-policy'), name).to.equal(POLICY);
      expect(headers.get('cross-origin-opener-policy'), name).to.equal('unsafe-none');
      expectPageHeaders(headers, name);
    }
    const { confidential } = on.clients;
    const error = await visitor.get(authorizationUrl(on.issuer, confidential, { scope: 'x' }));
    expect(error.location?.searchParams.get('error')).to.equal('invalid_scope');
    expect(error.headers.get('cache-control')).to.equal('no-store');
  });

  it('every JSON answer forbids MIME sniffing and framing, and also caching if it contains a token', async () => {
    const { machine, resourceServer } = on.clients;
    const by = { client: machine };
    const grant = { grant_type: 'client_credentials' };
    const token = await postForm(on.issuer, '/oauth/token', grant, by);
    expect(token.status).to.equal(200);
    const value = { token: String(token.body.access_token) };
    const answers = {
      token,
      introspection: await postForm(on.issuer, '/oauth/introspect', value, {
        client: resourceServer,
      }),
      'refused token': await postForm(on.issuer, '/oauth/token', {}),
      'refused introspection': await postForm(on.issuer, '/oauth/introspect', {}),
      'refused revocation': await postForm(on.issuer, '/oauth/revoke', {}),
      'refused revocation of the current': await postForm(on.issuer, '/oauth/token/revoke', {}),
      'refused session': await postForm(on.issuer, '/oauth/token/refresh', {}),
      'wrong method': await fetch(`${on.issuer}/oauth/token`),
      metadata: await fetch(on.issuer + METADATA),
    };
    for (const [name, { headers }] of Object.entries(answers)) {
      expect(headers.get('content-type'), name).to.equal('application/json; charset=utf-8');
      expect(headers.get('x-content-type-options'), name).to.equal('nosniff');
      const policy = "default-src 'none'; frame-ancestors 'none'";
      expect(headers.get('content-security-policy'), name).to.equal(policy);
      expect(headers.get('referrer-policy'), name).to.equal('same-origin');
      expect(headers.get('x-request-id'), name).to.match(REQUEST_ID);
      expect(headers.get('strict-transport-security'), name).to.equal(null);
    }
    // RFC 6749 §5.1, RFC 7662 §4.
    expect(answers.token.headers.get('cache-control')).to.equal('no-store');
    expect(answers.token.headers.get('pragma')).to.equal('no-cache');
    expect(answers.introspection.headers.get('cache-control')).to.equal('no-store');
  });

  it('an asset may be cached for a year and is revalidated with 304; a missing asset is not cached', async () => {
    const { html } = await person.get('/profile');
    const links = [...html.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, url]) => url);
    expect(links).to.have.length(3);
    for (const link of links) {
      const { status, headers } = await person.get(link ?? '');
      expect(status).to.equal(200);
      expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(headers.get('content-type')).to.match(/^(text\/(css|javascript)|image\/svg\+xml)/);
      const known = { 'if-none-match': headers.get('etag') ?? '', 'cache-control': 'max-age=0' };
      expect((await person.get(link ?? '', known)).status, link).to.equal(304);
    }
    const others = ['gatehouse.0000000000000000.css', 'gatehouse.css', '..%2fsign-in.ejs', ''];
    for (const other of [...others, '__proto__']) {
      const missing = await person.get(`/assets/${other}`);
      expect(missing.status, other).to.equal(404);
      expect(missing.headers.get('cache-control'), other).to.equal('no-store');
    }
  });

  it('the answer to an authorization request is not readable by pages of another origin', async () => {
    const url = authorizationUrl(on.issuer, on.clients.public, pkce().parameters);
    for (const method of ['GET', 'OPTIONS']) {
      const headers = { origin: 'https://evil.example' };
      const answer = await fetch(url, { method, headers, redirect: 'manual' });
      expect(answer.headers.get('access-control-allow-origin'), method).to.equal(null);
    }
  });

  it('every redirect has status 303, so that no form is ever sent to its target', async () => {
    const browser = createPerson(on.issuer);
    const { email, password } = on.seeded.person;
    const seen: Page[] = [];
    const walk = async (page: Page): Promise<Page> => {
      seen.push(page);
      const isOurs = page.location?.origin === on.issuer;
      return isOurs && page.location ? walk(await browser.get(page.location)) : page;
    };
    const url = authorizationUrl(on.issuer, on.clients.public, pkce().parameters);

    const signIn = await walk(await browser.get('/'));
    await walk(await browser.submit(signIn, { email, password }));
    await walk(await browser.get('/login'));
    for (const decision of ['of another page', 'approve', 'deny', 'switch-account']) {
      await walk(await browser.submit(await walk(await browser.get(url)), { decision }));
    }
    await walk(await browser.submit(await walk(await browser.get(url)), { email, password }));
    const signOut = await browser.get('/logout');
    await walk(await browser.submit(signOut, {}));
    await walk(await browser.get(`${url}&scope=foo`));

    const redirects = seen.filter(({ location }) => location);
    const places = redirects.map(({ url: { pathname } }) => pathname.replace(/[^/]{20,}$/, 'uid'));
    const all = '/ /profile /login /oauth/authorize /oauth/authorize/uid /interaction/uid /logout';
    expect([...new Set(places)]).to.have.members(wordsOf(all));
    expect(new Set(redirects.map(({ status }) => status))).to.deep.equal(new Set([303]));
  });

  it('every request for another host is refused with 421', async () => {
    const { port } = on.service.settings.server;
    const long = `${'a'.repeat(200)}.example`;
    const near = [`localhost.evil.example:${port}`, `evil.example@localhost:${port}`, 'localhost'];
    const hosts = ['evil.example', ...near, `127.0.0.1:${port}`, '', long];
    const requests = [
      { path: METADATA },
      { path: '/login' },
      { path: '/oauth/authorize?client_id=none' },
      { path: '/oauth/token', form: { grant_type: 'client_credentials' } },
      { path: '/login', form: { email: 'a@b.test', password: 'x' } },
      { path: '/assets/x' },
      { path: '/nothing' },
    ];
    for (const host of hosts) {
      for (const { path, form } of requests) {
        const answer = await rawRequest(port, path, { headers: { host }, ...(form && { form }) });
        expect(answer.status, `${host}${path}`).to.equal(421);
        const shown = (host || `127.0.0.1:${port}`).slice(0, 100);
        const expected = `This service answers only at ${on.issuer}, but the request was for ${shown}.\n`;
        expect(answer.text).to.equal(expected);
        expect(answer.headers.get('location')).to.equal(null);
        expect(answer.headers.get('x-request-id')).to.match(REQUEST_ID);
      }
    }
    const upperCase = { host: `LOCALHOST:${port}` };
    expect((await rawRequest(port, METADATA, { headers: upperCase })).status).to.equal(200);
  });
});

describe('security headers of an https issuer', () => {
  const start = startsOn();
  const host = 'gatehouse.example';
  let ask: (path: string, headers?: Record<string, string>) => Promise<RawAnswer>;
  before(async () => {
    const { settings } = await start({ settings: { issuer: `https://${host}` } });
    ask = (path, headers) => rawRequest(settings.server.port, path, { headers: { host, ...headers } });
  });

  it('a Host header with the default port of the scheme is accepted', async () => {
    expect((await ask(METADATA, { host: 'gatehouse.example:443' })).status).to.equal(200);
    expect((await ask(METADATA, { host: 'gatehouse.example:80' })).status).to.equal(421);
  });

  it('pages, JSON and assets make browsers use https for all later requests (HSTS)', async () => {
    const paths = ['/login', '/nothing', '/errors', '/oauth/authorize', METADATA, '/oauth/token'];
    for (const path of paths) {
      const { headers } = await ask(path);
      expect(headers.get('strict-transport-security'), path).to.equal('max-age=63072000');
    }
  });

  it('errors that are answered without a page have the security headers, too', async () => {
    for (const [status, path, headers] of [
      [421, '/login', { host: 'elsewhere.example' }],
      [400, '//x@[/#', { host }],
      [431, '/login', { long: 'a'.repeat(40_000) }],
    ] as const) {
      const answer = await ask(path, headers);
      expect(answer.status).to.equal(status);
      expect(answer.headers.get('strict-transport-security')).to.equal('max-age=63072000');
      expect(answer.headers.get('x-content-type-options')).to.equal('nosniff');
    }
  });
});

const REQUEST_ID = /^req_[A-Za-z0-9_-]{16}$/;

const POLICY =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';" +
  "base-uri 'none';object-src 'none';frame-ancestors 'none'";

/** Asserts the headers that all pages share. */
function expectPageHeaders(headers: Headers, name: string): void {
  expect(headers.get('cache-control'), name).to.equal('no-store');
  expect(headers.get('x-content-type-options'), name).to.equal('nosniff');
  expect(headers.get('x-frame-options'), name).to.equal('DENY');
  expect(headers.get('referrer-policy'), name).to.equal('same-origin');
  expect(headers.get('cross-origin-resource-policy'), name).to.equal('same-origin');
  expect(headers.get('x-request-id'), name).to.match(REQUEST_ID);
  expect(headers.get('x-powered-by'), name).to.equal(null);
  expect(headers.get('strict-transport-security'), name).to.equal(null);
}
