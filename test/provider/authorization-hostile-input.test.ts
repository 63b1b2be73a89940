/** The authorization endpoint and its pages under input that no client library sends. */
import { expect } from 'chai';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { outcomeOf } from './authorization-outcome.ts';

/** Hostile bytes in URLs: a NUL, a lone surrogate, invalid UTF-8, broken escapes, long text. */
const BYTES = ['%00', '%ED%A0%80', '%', '%zz', '%0d%0aSet-Cookie:%20a=b', '%EF%BF%BF%F0%9F%98%80', 'a'.repeat(8192)];

/** The outcome of hostile bytes in each parameter. Parameters without a meaning are ignored. */
const OUTCOMES: Readonly<Record<string, string>> = {
  client_id: 'page 400',
  redirect_uri: 'page 400',
  response_type: 'unsupported_response_type',
  response_mode: 'unsupported_response_mode',
  scope: 'invalid_scope',
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

const short = (text: string): string => text.slice(0, 24);

describe('hostile input at the authorization endpoint', () => {
  const on = startSeeded();
  let client: TestClient;

  before(() => {
    client = on.clients.confidential;
  });

  afterEach('no internal error was logged', () => {
    const faults = on.service.logLines.filter((line) => JSON.parse(line).level >= 50);
    expect(faults).to.deep.equal([]);
  });

  /** Returns the outcome of one request in a new browser. */
  const outcome = (url: string): Promise<string> => outcomeOf(createPerson(on.issuer), url);

  const requestWith = (name: string, rawValue: string): string =>
    `${authorizationUrl(on.issuer, client, { [name]: undefined })}&${name}=${rawValue}`;

  it('hostile bytes in a parameter are refused as its other wrong values are, or ignored', async () => {
    for (const [place, [name, expected]] of Object.entries(OUTCOMES).entries()) {
      for (const [index, bytes] of BYTES.entries()) {
        // What is ignored gets some of the bytes each, and all of them together.
        if (expected === 'sign-in' && name !== 'state' && (place + index) % 4 !== 0) continue;
        const isTooLong = name === 'state' && bytes.length > 2_046;
        const seen = await outcome(requestWith(name, bytes));
        expect(seen, `${name}=${short(bytes)}`).to.equal(isTooLong ? 'invalid_request' : expected);
      }
    }
  });

  it('an authorization parameter that is sent twice is refused or ignored', async () => {
    const known = new URLSearchParams(authorizationUrl(on.issuer, client).search);
    for (const name of Object.keys(OUTCOMES)) {
      const url = requestWith(name, `${known.get(name) ?? 'x'}&${name}=x`);
      expect(await outcome(url), name).to.be.oneOf(['page 400', 'invalid_request', 'sign-in']);
    }
  });

  it('hostile bytes in the name of a parameter are ignored; in the path they get 410', async () => {
    const { issuer } = on;
    const url = authorizationUrl(issuer, client);
    for (const bytes of BYTES) {
      expect(await outcome(`${url}&${bytes}=1`), short(bytes)).to.equal('sign-in');
      expect(await outcome(`${issuer}/oauth/authorize/${bytes}`)).to.equal('page 410');
      expect(await outcome(`${issuer}/interaction/${bytes}`)).to.equal('page 410');
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
});
