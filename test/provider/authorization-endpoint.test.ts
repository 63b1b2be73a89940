/** `GET /oauth/authorize`: accepted requests, refusals of all others (RFC 6749 §4.1), and input that no library sends. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, exchangeCode, type Parameters, pkce, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { wordsOf } from '../support/words.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';
import { granted } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

/** A change of a valid request: parameters to replace or remove, or a string of more parameters. */
type Change = Parameters | string;

/** Requests answered with a page, because the client may not own the redirect URI. */
const NOT_REDIRECTED: readonly (readonly [Change, heading: string])[] = [
  [{ client_id: 'nope' }, 'We do not know this app'],
  [{ client_id: undefined }, 'This app made a mistake'],
  ['client_id=gate_ci_0123456789012345678901', 'This app made a mistake'],
  [{ redirect_uri: undefined }, 'made a mistake'],
  ['redirect_uri=https://evil.example/', 'This app made a mistake'],
];

/** URIs that a browser or a careless comparison could mistake for the registered one. */
const NEAR_MISSES: readonly string[] = [
  ...['/', '?x=1', '?', '#f', '\0', '%0d%0a', '\r\nX: y'].map((tail) => REDIRECT_URI + tail),
  ` ${REDIRECT_URI}`,
  'https://partner.example/Callback',
  'https://PARTNER.example/callback',
  'HTTPS://partner.example/callback',
  'http://partner.example/callback',
  'https://partner.example:443/callback',
  'https://partner.example./callback',
  'https://partner.example/./callback',
  'https://partner.example//callback',
  'https://partner.example/%63allback',
  'https://partner.example%2f@evil.example/callback',
  'https://partner.example@evil.example/callback',
  'https://partner.example.evil.example/callback',
  'https://evil.example/callback',
  '//partner.example/callback',
  '/callback',
  'javascript:alert(1)',
  'data:text/html,x',
];

/** Requests that are refused with a redirect, with the error in the query, the only response mode. */
const REDIRECTED: readonly (readonly [Change, error: string])[] = [
  ['state=another', 'invalid_request'],
  [{ response_type: undefined }, 'invalid_request'],
  [{ response_type: 'none' }, 'unsupported_response_type'],
  [{ response_type: 'code code' }, 'unsupported_response_type'],
  [{ response_type: 'bogus' }, 'unsupported_response_type'],
  [{ response_type: 'token' }, 'unsupported_response_type'],
  [{ response_type: 'id_token' }, 'unsupported_response_type'],
  [{ response_type: 'code token' }, 'unsupported_response_type'],
  [{ response_type: 'code id_token' }, 'unsupported_response_type'],
  [{ response_mode: 'fragment' }, 'unsupported_response_mode'],
  [{ response_mode: 'form_post' }, 'unsupported_response_mode'],
  [{ response_mode: 'web_message' }, 'unsupported_response_mode'],
  [{ response_mode: 'jwt' }, 'unsupported_response_mode'],
  [{ response_mode: 'bogus' }, 'unsupported_response_mode'],
  [{ state: undefined }, 'invalid_request'],
  [{ prompt: 'bogus' }, 'invalid_request'],
  [{ prompt: 'none login' }, 'invalid_request'],
  [{ request: 'e30.e30.' }, 'request_not_supported'],
  [{ request_uri: 'https://evil.example/' }, 'request_uri_not_supported'],
  [{ request_uri: 'urn:ietf:params:oauth:request_uri:x' }, 'request_uri_not_supported'],
  [{ registration: '{}' }, 'registration_not_supported'],
  // No scopes exist.
  ...['foo', 'openid', 'offline_access', 'openid foo', 'read write', ' ', 'a"b'].map(
    (scope) => [{ scope }, 'invalid_scope'] as const,
  ),
  ['scope=&scope=', 'invalid_request'],
];

/** Hostile bytes in URLs: a NUL, a lone surrogate, invalid UTF-8, broken escapes, long text. */
const BYTES = ['%00', '%ED%A0%80', '%', '%zz', '%0d%0aSet-Cookie:%20a=b', '%EF%BF%BF%F0%9F%98%80', 'a'.repeat(8192)];

/** The outcome of hostile bytes in each parameter. Parameters without a meaning are ignored. */
const OUTCOMES: Readonly<Record<string, string>> = {
  client_id: 'page 400',
  redirect_uri: 'page 400',
  response_type: 'unsupported_response_type',
  response_mode: 'unsupported_response_mode',
  scope: 'invalid_scope',
  'scope[a]': 'sign-in',
  prompt: 'invalid_request',
  code_challenge: 'invalid_request',
  code_challenge_method: 'invalid_request',
  request: 'request_not_supported',
  request_uri: 'request_uri_not_supported',
  registration: 'registration_not_supported',
  state: 'sign-in',
  login_hint: 'sign-in',
  ui_locales: 'sign-in',
  display: 'sign-in',
  nonce: 'sign-in',
  max_age: 'sign-in',
  claims: 'sign-in',
  id_token_hint: 'sign-in',
  resource: 'sign-in',
  authorization_details: 'sign-in',
  unknown_parameter: 'sign-in',
};

const STATE = 'state-of-the-partner';
/** RFC 6749 §4.1.2.1: the characters allowed in `error_description`. */
const DESCRIPTION = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/;

const LOOPBACK = 'http://127.0.0.1/cb';
const LOOPBACK_6 = 'http://[::1]:7000/cb?app=1';

/** URIs that differ from a registered loopback redirect URI in more than the port. */
const NOT_THE_PORT = wordsOf(String.raw`
  http://127.0.0.1:51004/ http://127.0.0.1:51004/cb?x=1 http://127.0.0.1:51004/cb#f http://127.0.0.1:51004/CB
  https://127.0.0.1:51004/cb http://localhost:51004/cb http://127.0.0.2:51004/cb http://127.1:51004/cb
  http://[::ffff:127.0.0.1]:51004/cb http://user@127.0.0.1:51004/cb http://127.0.0.1:1@evil.example/cb
  http://127.0.0.1.evil.example:51004/cb http://127.0.0.1:51004\@evil.example/cb http://127.0.0.1:70000/cb
  http://127.0.0.1:51004/./cb http://[::1]:51004/cb?app=2`);

describe('authorization endpoint', () => {
  const on = startSeeded();
  let client: TestClient;
  /** A browser whose user is signed in and has approved the client. */
  let person: Person;

  before(async () => {
    client = on.clients.confidential;
    person = on.partner.browser;
    await person.authorize(request({}), on.seeded.person);
  });

  afterEach('no internal error was logged', () => {
    const faults = on.service.logLines.filter((line) => JSON.parse(line).level >= 50);
    expect(faults).to.deep.equal([]);
  });

  function request(change: Change): string {
    if (typeof change !== 'string') return authorizationUrl(on.issuer, client, change).href;
    return `${authorizationUrl(on.issuer, client)}&${change}`;
  }

  /** Requests the URL with a new browser. */
  const visit = (url: string, headers?: Record<string, string>): Promise<Page> =>
    createPerson(on.issuer).get(url, headers);

  function expectPage(page: Page, heading: string): void {
    expect(page.status).to.equal(400);
    expect(page.headers.get('location')).to.equal(null);
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    expect(page.html).to.include(heading).and.to.include(page.headers.get('x-request-id'));
  }

  it('a request with an unknown or unsuitable client, or without exactly one redirect URI, gets a page, no redirect', async () => {
    for (const [change, heading] of NOT_REDIRECTED) expectPage(await visit(request(change)), heading);
    for (const { id } of [on.clients.machine, on.clients.resourceServer]) {
      expectPage(await visit(request({ client_id: id })), 'return address is not registered');
    }
  });

  it('an authorization request never redirects to a URI that differs from the registered one in any character', async () => {
    for (const uri of NEAR_MISSES) {
      expectPage(await visit(request({ redirect_uri: uri })), 'return address is not registered');
    }
  });

  it('a refusal that may redirect sends error, state, iss and the URL of the page about the error', async () => {
    for (const [change, error] of REDIRECTED) {
      const url = request(change);
      const { status, location } = await visit(url);
      expect(status, url).to.equal(303);
      const { origin, pathname, searchParams, hash } = location ?? new URL('about:blank');
      expect(origin + pathname + hash, url).to.equal(REDIRECT_URI);
      const { error_description: description = '-', ...sent } = Object.fromEntries(searchParams);
      const [state, second] = new URL(url).searchParams.getAll('state');
      const isOne = state !== undefined && second === undefined;
      const error_uri = `${on.issuer}/errors/${error}`;
      expect(sent, url).to.deep.equal({ error, error_uri, ...(isOne && { state }), iss: on.issuer });
      expect(description, url).to.match(DESCRIPTION);
      expect((await visit(error_uri)).status).to.equal(200);
    }
  });

  it('an authorization request may have a code challenge instead of a state', async () => {
    const page = await person.get(request({ state: undefined, ...pkce().parameters }));
    expect(answerIn(page)).to.have.all.keys('code', 'iss');
  });

  it('empty parameters are treated as absent', async () => {
    const empty = 'code_challenge=&code_challenge_method=&scope=&response_mode=&prompt=';
    expect(answerIn(await person.get(request(empty)))).to.have.all.keys('code', 'state', 'iss');
  });

  it('the state is returned byte for byte: with a code, with an error, and after Deny', async () => {
    for (const state of ['a b+c&d="<é', 's'.repeat(2_046), '\0\r\n%00%zz %2B\u{1f600}']) {
      const { code, ...success } = answerIn(await person.get(request({ state })));
      expect(code).to.match(/^gate_ac_[A-Za-z0-9_-]{71}$/);
      expect(success).to.deep.equal({ state, iss: on.issuer });
      expect(answerIn(await visit(request({ state, prompt: 'none' }))).state).to.equal(state);
      const asked = await person.open(request({ state, prompt: 'consent' }));
      const denied = await person.follow(await person.submit(asked, { decision: 'deny' }));
      expect(answerIn(denied).state).to.equal(state);
    }
  });

  it('Deny, and Cancel on the sign-in page, redirect with access_denied', async () => {
    const stranger = createPerson(on.issuer);
    for (const [who, prompt] of [[person, 'consent'] as const, [stranger, undefined] as const]) {
      const asked = await who.open(request({ prompt }));
      const denied = await who.follow(await who.submit(asked, { decision: 'deny' }));
      expect(answerIn(denied)).to.deep.equal({
        error: 'access_denied',
        error_description: 'the person refused the request',
        error_uri: `${on.issuer}/errors/access_denied`,
        state: STATE,
        iss: on.issuer,
      });
    }
  });

  it('the answer is appended to the redirect URI, which is otherwise unchanged (RFC 6749 §3.1.2)', async () => {
    for (const query of ['?x=a%20b&y&z=1%2B1', '?', '?y&', '?a=b=c&a=(d)']) {
      const uri = REDIRECT_URI + query;
      const client = await addTestClient(on.service, 'Odd', { kind: 'public', redirectUris: [uri] });
      const change = { client_id: client.id, redirect_uri: uri, ...pkce().parameters };
      const start = `${uri}${/[?&]$/.test(uri) ? '' : '&'}`;
      const answered = await eventually(() => person.authorize(request(change), on.seeded.person));
      expect(answered.href)
        .to.match(/[?&]code=gate_ac_/)
        .and.satisfy((href: string) => href.startsWith(start));
      const { location: refused } = await person.get(request({ ...change, scope: 'all' }));
      expect(refused?.href)
        .to.include('error=invalid_scope')
        .and.satisfy((href: string) => href.startsWith(start));
      for (const { search } of [answered, refused ?? expect.fail()]) {
        const names = [...new URLSearchParams(search.slice(query.length)).keys()];
        expect(names).to.include.members(['state', 'iss']).and.have.length(new Set(names).size);
      }
    }
  });

  const requestWith = (name: string, rawValue: string): string =>
    `${authorizationUrl(on.issuer, client, { [name]: undefined })}&${name}=${rawValue}`;

  it('hostile bytes in a parameter are ignored, or refused like any other wrong value of it', async () => {
    for (const [place, [name, expected]] of Object.entries(OUTCOMES).entries()) {
      for (const [index, bytes] of BYTES.entries()) {
        // What is ignored gets some of the bytes each, and all of them together.
        if (expected === 'sign-in' && name !== 'state' && (place + index) % 4 !== 0) continue;
        const isTooLong = name === 'state' && bytes.length > 2_046;
        const seen = await outcomeOf(createPerson(on.issuer), requestWith(name, bytes));
        expect(seen, `${name}=${bytes.slice(0, 24)}`).to.equal(isTooLong ? 'invalid_request' : expected);
      }
    }
  });

  it('hostile bytes in the name of a parameter are ignored; in the path they are answered with 410', async () => {
    const { issuer } = on;
    const url = authorizationUrl(issuer, client);
    for (const bytes of BYTES) {
      expect(await outcomeOf(createPerson(on.issuer), `${url}&${bytes}=1`), bytes.slice(0, 24)).to.equal('sign-in');
      expect(await outcomeOf(createPerson(on.issuer), `${issuer}/oauth/authorize/${bytes}`)).to.equal('page 410');
      expect(await outcomeOf(createPerson(on.issuer), `${issuer}/interaction/${bytes}`)).to.equal('page 410');
    }
  });

  it('pages escape all values of the authorization request', async () => {
    const markup = '"><svg onload=alert(1)>\'<script>alert(1)</script>';
    const encoded = encodeURIComponent(markup);
    const requests = [
      requestWith('client_id', encoded),
      requestWith('redirect_uri', encoded),
      requestWith('redirect_uri', `${encodeURIComponent(REDIRECT_URI)}&redirect_uri=${encoded}`),
      requestWith('login_hint', encoded),
      `${on.issuer}/oauth/authorize/${encoded}`,
      `${on.issuer}/oauth/authorize?${encoded}=${encoded}&client_id=${encoded}&client_id=1`,
    ];
    for (const url of requests) {
      const person = createPerson(on.issuer);
      const page = await person.open(url);
      expect(page.status, url).to.be.oneOf([200, 400, 410]);
      expect(page.html.toLowerCase(), url).to.not.include('<svg onload').and.not.include('<script>');
      const policy = page.headers.get('content-security-policy');
      expect(policy, url).to.include("default-src 'none'").and.include("script-src 'self'");
    }
    const person = createPerson(on.issuer);
    const page = await person.open(requestWith('login_hint', encoded));
    const [form] = page.forms;
    expect(form?.values).to.deep.include(['email', markup]);
  });

  describe('native clients (RFC 8252): loopback redirects and private-use schemes', () => {
    let native: TestClient;

    before(async () => {
      native = await register([LOOPBACK, LOOPBACK_6], true);
    });

    async function register(redirectUris: readonly string[], isNative: boolean): Promise<TestClient> {
      const draft = { kind: 'public', name: 'Handheld', redirectUris, isNative } as const;
      const { client } = await on.service.clients.add(draft);
      return { id: client.id, redirectUri: redirectUris[0] ?? '' };
    }

    const outcome = (of: TestClient, redirect_uri: string): Promise<string> =>
      outcomeOf(person, authorizationUrl(on.issuer, of, { redirect_uri, ...pkce().parameters }));

    it('a loopback redirect URI may have any port (RFC 8252 §7.3)', async () => {
      for (const uri of [
        LOOPBACK,
        'http://127.0.0.1:51004/cb',
        'http://127.0.0.1:1/cb',
        LOOPBACK_6,
        'http://[::1]:65535/cb?app=1',
      ]) {
        expect(await outcome(native, uri), uri).to.equal('consent');
      }
    });

    it('a loopback redirect URI may differ in nothing but the port', async () => {
      for (const uri of NOT_THE_PORT) expect(await outcome(native, uri), uri).to.equal('page 400');
    });

    it('a client that is not native must use the registered port in its redirect URI', async () => {
      const web = await register(['http://127.0.0.1:4000/cb'], false);
      expect(await outcome(web, 'http://127.0.0.1:4000/cb')).to.equal('consent');
      expect(await outcome(web, 'http://127.0.0.1:4001/cb')).to.equal('page 400');
    });

    it('a code is bound to the port of the redirect URI to which it was sent', async () => {
      const { issuer } = on;
      const { verifier: code_verifier, parameters } = pkce();
      const redirect_uri = 'http://127.0.0.1:51004/cb';
      const url = authorizationUrl(issuer, native, { redirect_uri, ...parameters });
      const redirect = await person.authorize(url, on.seeded.person);
      expect(redirect.origin + redirect.pathname).to.equal(redirect_uri);
      const code = redirect.searchParams.get('code') ?? '';
      for (const another of [LOOPBACK, 'http://127.0.0.1:51005/cb']) {
        const proof = { redirect_uri: another, code_verifier };
        const refused = await exchangeCode(issuer, native, code, proof);
        expectRefusal(refused, 400, 'invalid_grant');
      }
      await granted(exchangeCode(issuer, native, code, { redirect_uri, code_verifier }));
    });

    it('a private-use scheme delivers the code to the app, and must match exactly', async () => {
      const { issuer } = on;
      const client = on.clients.native;
      const { verifier: code_verifier, parameters } = pkce();
      const url = authorizationUrl(issuer, client, parameters);
      const redirect = await person.authorize(url, on.seeded.person);
      expect(redirect.href.split('?')[0]).to.equal('com.example.warehouse:/callback');
      const code = redirect.searchParams.get('code') ?? '';
      await granted(exchangeCode(issuer, client, code, { code_verifier }));
      for (const uri of [
        'com.example.warehouse:/callback/',
        'com.example.warehouse:callback',
        'com.example.warehouse://callback',
        'COM.example.warehouse:/callback',
      ]) {
        expect(await outcome(client, uri), uri).to.equal('page 400');
      }
    });

    it('a redirect to an app shows a closing page in browsers, and is a plain redirect for programs', async () => {
      for (const decision of ['approve', 'deny']) {
        const request = authorizationUrl(on.issuer, on.clients.native, pkce().parameters);
        const page = await person.open(request);
        const { location } = await person.submit(page, { decision });
        const path = location?.pathname ?? '';
        const { host, port } = new URL(on.issuer);
        const navigation = { host, cookie: person.cookieHeader(path), 'sec-fetch-mode': 'navigate' };
        const { status, headers, text: html } = await rawRequest(Number(port), path, { headers: navigation });
        expect(status).to.equal(200);
        expect(html).to.include(said('handed-over.title')).and.include('Warehouse Phone');
        const [, url = ''] = /^0; url=(com\.example\.warehouse:.*)$/.exec(headers.get('refresh') ?? '') ?? [];
        const parameter = decision === 'approve' ? 'code' : 'error';
        expect(new URL(url).searchParams.has(parameter)).to.equal(true);
        expect(html).to.include(`href="${url.replaceAll('&', '&amp;')}"`);
        expect(headers.get('cache-control')).to.equal('no-store');
        expect(headers.has('location')).to.equal(false);
      }
      const sent = await person.authorize(
        authorizationUrl(on.issuer, on.clients.native, pkce().parameters),
        on.seeded.person,
      );
      expect(sent.protocol).to.equal('com.example.warehouse:');
    });
  });
});
