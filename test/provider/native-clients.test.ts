/** Native clients (RFC 8252): loopback redirects and private-use schemes. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { authorizationUrl, exchangeCode, pkce, type TestClient } from '../support/oauth.ts';
import type { Person } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
import { wordsOf } from '../support/words.ts';
import { outcomeOf } from './authorization-outcome.ts';
import { expectRefusal } from './refusals.ts';

const LOOPBACK = 'http://127.0.0.1/cb';
const LOOPBACK_6 = 'http://[::1]:7000/cb?app=1';

/** URIs that differ from a registered loopback redirect URI in more than the port. */
const NOT_THE_PORT = wordsOf(String.raw`
  http://127.0.0.1:51004/ http://127.0.0.1:51004/cb?x=1 http://127.0.0.1:51004/cb#f http://127.0.0.1:51004/CB
  https://127.0.0.1:51004/cb http://localhost:51004/cb http://127.0.0.2:51004/cb http://127.1:51004/cb
  http://[::ffff:127.0.0.1]:51004/cb http://user@127.0.0.1:51004/cb http://127.0.0.1:1@evil.example/cb
  http://127.0.0.1.evil.example:51004/cb http://127.0.0.1:51004\@evil.example/cb http://127.0.0.1:70000/cb
  http://127.0.0.1:51004/./cb http://[::1]:51004/cb?app=2`);

describe('native clients', () => {
  const on = startSeeded();
  let native: TestClient;
  /** The browser of a signed-in user. */
  let person: Person;

  before(async () => {
    native = await register([LOOPBACK, LOOPBACK_6], true);
    person = on.partner.browser;
    await person.signIn(on.seeded.person);
  });

  async function register(redirectUris: readonly string[], isNative: boolean): Promise<TestClient> {
    const draft = { kind: 'public', name: 'Handheld', redirectUris, isNative } as const;
    const { client } = await on.service.clients.add(draft);
    return { id: client.id, redirectUri: redirectUris[0] ?? '' };
  }

  const outcome = (client: TestClient, redirect_uri: string): Promise<string> => {
    const parameters = { redirect_uri, ...pkce().parameters };
    return outcomeOf(person, authorizationUrl(on.issuer, client, parameters));
  };

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
    const answer = await exchangeCode(issuer, native, code, { redirect_uri, code_verifier });
    expect(answer.status, answer.text).to.equal(200);
  });

  it('a private-use scheme delivers the code to the app, and must match exactly', async () => {
    const { issuer } = on;
    const client = on.clients.native;
    const { verifier: code_verifier, parameters } = pkce();
    const url = authorizationUrl(issuer, client, parameters);
    const redirect = await person.authorize(url, on.seeded.person);
    expect(redirect.href.split('?')[0]).to.equal('com.example.warehouse:/callback');
    const code = redirect.searchParams.get('code') ?? '';
    const answer = await exchangeCode(issuer, client, code, { code_verifier });
    expect(answer.status, answer.text).to.equal(200);
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
