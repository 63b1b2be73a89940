/** The web pages that may end an authorization and read the answer (CORS). */
import { expect } from 'chai';
import { type Answer, ask, basic, pkce, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { expectRefusal } from './refusals.ts';

const OWN = new URL(REDIRECT_URI).origin;
/** The origin of another registered redirect URI. */
const ALSO_OWN = 'https://map.partner.example:8443';
const NOT_OWN = [
  'https://evil.example',
  'http://partner.example',
  'https://partner.example:444',
  'https://partner.example.evil.example',
  'https://sub.partner.example',
  'https://PARTNER.example',
  'null',
];

describe('calls from web pages', () => {
  const on = startSeeded();

  before('register another redirect URI', () =>
    on.service.clients.edit(on.clients.public.id, {
      name: 'Warehouse Map',
      redirectUris: [REDIRECT_URI, `${ALSO_OWN}/`],
    }),
  );

  const send = (
    path: string,
    method: string,
    headers: Record<string, string>,
    form?: Record<string, string>,
  ): Promise<Answer> =>
    ask(new URL(path, on.issuer), {
      method,
      headers,
      ...(form && { body: new URLSearchParams(form) }),
    });

  /** Revokes as a page of this client does (RFC 7009). */
  const revoke = (origin: string, token: string, client = on.clients.public): Promise<Answer> => {
    const proof = client.secret === undefined ? {} : { authorization: basic(client) };
    const form = { token, ...(client.secret === undefined && { client_id: client.id }) };
    return send('/oauth/revoke', 'POST', { origin, ...proof }, form);
  };

  const revokeItself = (origin: string, token: string): Promise<Answer> =>
    send('/oauth/token/revoke', 'POST', { origin, authorization: `Bearer ${token}` });

  const accessToken = async (client: TestClient): Promise<string> => (await on.partner.tokens(client)).accessToken;

  function expectReadable({ headers }: Answer, origin: string): void {
    expect(headers.get('access-control-allow-origin')).to.equal(origin);
    const exposed = 'WWW-Authenticate, Retry-After, X-Request-Id';
    expect(headers.get('access-control-expose-headers')).to.equal(exposed);
    expect(headers.get('vary')).to.match(/\borigin\b/i);
    expect(headers.get('access-control-allow-credentials')).to.equal(null);
  }

  async function expectRefused(answer: Answer, token: string, what: string): Promise<void> {
    expectRefusal(answer, 400, 'invalid_request');
    expectUnreadable(answer, what);
    expect(await on.partner.isActive(token), what).to.equal(true);
  }

  const expectUnreadable = ({ headers }: Answer, what: string): void => {
    const cors = [...headers.keys()].filter((name) => name.startsWith('access-control-'));
    expect(cors, what).to.deep.equal([]);
  };

  it('pages at the origin of each redirect URI of a public client may revoke its tokens', async () => {
    for (const origin of [OWN, ALSO_OWN]) {
      for (const [by, status] of [
        [revoke, 200],
        [revokeItself, 204],
      ] as const) {
        const token = await accessToken(on.clients.public);
        const answer = await by(origin, token);
        expect(answer.status).to.equal(status);
        expectReadable(answer, origin);
        expect(await on.partner.isActive(token)).to.equal(false);
      }
    }
  });

  it('the web page of a public client can read every refusal of its requests', async () => {
    const foreign = await accessToken(on.clients.confidential);
    const token = await accessToken(on.clients.public);
    await revokeItself(OWN, token);
    const unknown = { id: `gate_ci_${'x'.repeat(22)}`, redirectUri: '' };
    const twice = { origin: OWN, authorization: `Bearer ${token}` };
    const refusals: readonly (readonly [status: number, error: string, Promise<Answer>])[] = [
      [400, 'invalid_grant', revoke(OWN, foreign)],
      [400, 'invalid_request', revoke(OWN, '')],
      [401, 'invalid_client', revoke(OWN, 'x', unknown)],
      [401, 'invalid_token', revokeItself(OWN, token)],
      [401, 'invalid_token', send('/oauth/token/revoke', 'POST', { origin: OWN })],
      [400, 'invalid_request', send('/oauth/token/revoke', 'POST', twice, { token })],
    ];
    for (const [status, error, answer] of refusals) {
      expectRefusal(await answer, status, error);
      expectReadable(await answer, OWN);
    }
    expectUnreadable(await revokeItself('null', token), 'the opaque origin');
  });

  it('a page of another origin can neither revoke a token nor read the answer', async () => {
    const token = await accessToken(on.clients.public);
    for (const origin of NOT_OWN) {
      await expectRefused(await revoke(origin, token), token, origin);
      await expectRefused(await revokeItself(origin, token), token, origin);
    }
    const hidden = { 'sec-fetch-site': 'cross-site', authorization: `Bearer ${token}` };
    const { body } = await send('/oauth/token/revoke', 'POST', hidden);
    expect(body.error_description).to.equal("the page that sent this is not one of this client's");
  });

  it('no page may revoke tokens of a confidential or a native client', async () => {
    const token = await accessToken(on.clients.confidential);
    await expectRefused(await revoke(OWN, token, on.clients.confidential), token, 'confidential');
    await expectRefused(await revokeItself(OWN, token), token, 'confidential');
    const native = await accessToken(on.clients.native);
    await expectRefused(await revoke('null', native, on.clients.native), native, 'native');
    await expectRefused(await revokeItself('null', native), native, 'native');
  });

  it('a token revocation sent by the web page of a deleted client is refused', async () => {
    const redirectUris = [`${OWN}/callback`];
    const client = await addTestClient(on.service, 'Short Lived', { kind: 'public', redirectUris });
    const token = await accessToken(client);
    await on.service.clients.remove(client.id);
    const answer = await revokeItself(OWN, token);
    expectRefusal(answer, 400, 'invalid_request');
    expectUnreadable(answer, 'deleted');
  });

  it("a web page can exchange a code only for a public client, and only from the client's own origin", async () => {
    const { verifier, parameters } = pkce();
    const { public: publicClient, confidential, native, machine } = on.clients;
    const code = await on.partner.code(publicClient, parameters);
    const form = {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      client_id: publicClient.id,
      redirect_uri: publicClient.redirectUri,
    };
    const exchange = (origin: string) => send('/oauth/token', 'POST', { origin }, form);
    for (const origin of NOT_OWN) {
      const refused = await exchange(origin);
      expectRefusal(refused, 400, 'invalid_request');
      expect(refused.headers.get('access-control-allow-origin'), origin).to.equal(null);
    }
    const given = await exchange(OWN);
    expect(given.status, given.text).to.equal(200);
    expectReadable(given, OWN);
    const used = await exchange(OWN);
    expectRefusal(used, 400, 'invalid_grant');
    expectReadable(used, OWN);

    const again = { grant_type: 'refresh_token', refresh_token: 'x' };
    // Pages of a private-use scheme send the origin `null`, but so do others, such as sandboxed pages.
    for (const [client, origin] of [
      [confidential, OWN],
      [machine, OWN],
      [native, 'null'],
    ] as const) {
      const proof = client.secret === undefined ? {} : { authorization: basic(client) };
      const named = client.secret === undefined ? { ...again, client_id: client.id } : again;
      const refused = await send('/oauth/token', 'POST', { origin, ...proof }, named);
      expectRefusal(refused, 400, 'invalid_request');
      expect(refused.headers.get('access-control-allow-origin'), client.id).to.equal(null);
    }
  });

  it('the answer to a request without an origin has no CORS headers', async () => {
    const token = await accessToken(on.clients.public);
    expectUnreadable(await revokeCurrent(on.issuer, token), 'no origin');
  });

  describe('a CORS preflight succeeds only for endpoints that web pages may use', () => {
    const preflight = (path: string, headers: Record<string, string>) =>
      send(path, 'OPTIONS', { 'access-control-request-method': 'POST', ...headers });

    const asked = { 'access-control-request-headers': 'authorization,content-type' };

    it('a CORS preflight with origin and method permits requests without cookies; any other preflight is refused', async () => {
      for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/token/revoke']) {
        const { status, headers, text } = await preflight(path, { origin: OWN, ...asked });
        expect(status, text).to.equal(204);
        expect(Object.fromEntries(headers)).to.include({
          'access-control-allow-origin': OWN,
          'access-control-allow-methods': 'POST',
          'access-control-allow-headers': 'authorization,content-type',
          'access-control-max-age': '3600',
        });
        expect(headers.get('vary')).to.match(/\borigin\b/i);
        expect(headers.get('access-control-allow-credentials')).to.equal(null);
        for (const refused of [
          await preflight(path, { origin: 'null' }),
          await preflight(path, {}),
          await send(path, 'OPTIONS', { origin: OWN }),
        ]) {
          expect([refused.status, refused.headers.get('allow')], path).to.deep.equal([405, 'POST']);
          expectUnreadable(refused, path);
        }
      }
    });

    it('a CORS preflight allows any page to read the documents about the service', async () => {
      for (const path of ['/openapi.json', '/.well-known/oauth-authorization-server']) {
        const asked = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-library' };
        const headers = { origin: OWN, ...asked };
        const answer = await send(path, 'OPTIONS', headers);
        expect(answer.status, path).to.equal(204);
        expect(answer.headers.get('access-control-allow-origin'), path).to.equal(OWN);
        expect(answer.headers.get('access-control-allow-headers'), path).to.equal('x-library');
      }
    });

    it('any CORS preflight to an endpoint for servers or for our own pages is refused', async () => {
      for (const path of ['/oauth/introspect', '/oauth/token/refresh']) {
        const answer = await preflight(path, { origin: OWN });
        expect(answer.status).to.equal(405);
        expectUnreadable(answer, path);
      }
    });
  });

  it('no page may read introspection answers, because introspection needs a client secret', async () => {
    const token = await accessToken(on.clients.public);
    const { resourceServer } = on.clients;
    const headers = { origin: OWN, authorization: basic(resourceServer) };
    expectUnreadable(await send('/oauth/introspect', 'POST', headers, { token }), 'with a secret');
    const own = { token, client_id: on.clients.public.id };
    const refused = await send('/oauth/introspect', 'POST', { origin: OWN }, own);
    expect(refused.status).to.equal(401);
    expectUnreadable(refused, 'its own token');
  });
});
