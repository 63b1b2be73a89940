/** The refusals of a protected API, before any of its own code runs. */
import { type IncomingMessage, request as send } from 'node:http';
import { expect } from 'chai';
import { ask } from '../../../test/support/oauth.ts';
import { type Introspector, protectedResourceMetadata, type ReceivedRequest } from '../src/resource-server.ts';
import { API, answering, introspectorOf, type StandIn, startStandIn, TOKEN } from './stand-in.ts';
import { startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

const BEARER = `Bearer ${TOKEN}`;
const JSON_TYPE = { 'content-type': 'application/json' };
const QUERY = '{"query":"{ caller { subject } }"}';
const INVALID_TOKEN =
  'Bearer error="invalid_token", error_description="the access token or API key is unknown, expired or revoked"';

describe('the refusals of a protected API', () => {
  let service: StandIn;
  let introspector: Introspector;
  let api: WarehouseApi;

  before(async () => {
    service = await startStandIn(answering({ active: false }));
    introspector = introspectorOf(API, { issuer: service.origin });
    api = await startWarehouseApi(introspector);
  });

  async function post(headers: Record<string, string>, { path = '/graphql', body = QUERY } = {}) {
    const answer = await ask(new URL(path, api.url), {
      method: 'POST',
      headers: { ...JSON_TYPE, ...headers },
      body,
    });
    expect(answer.body).to.not.have.property('data');
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const challenge = answer.headers.get('www-authenticate');
    return { status: answer.status, challenge, body: answer.body };
  }

  /** Defines a test in which the service must not be asked. */
  function itLocally(title: string, rule: () => Promise<void>): void {
    it(title, async () => {
      const before = service.asked.length;
      await rule();
      expect(service.asked.length - before).to.equal(0);
    });
  }

  itLocally('an API call without credentials gets a challenge without an error code', async () => {
    const message = 'an access token or API key is required';
    const errors = [{ message, extensions: { code: 'UNAUTHENTICATED' } }];
    for (const authorization of [undefined, 'Basic YTpi', TOKEN, `Token ${TOKEN}`]) {
      const answer = await post(authorization === undefined ? {} : { authorization });
      expect(answer).to.include({ status: 401, challenge: 'Bearer' });
      expect(answer.body).to.deep.equal({ errors });
    }
  });

  it('a token that is not active at the service is refused with invalid_token', async () => {
    for (const authorization of [BEARER, `bEARER ${TOKEN}`, `Bearer   ${TOKEN}`]) {
      const answer = await post({ authorization });
      expect(answer).to.include({ status: 401, challenge: INVALID_TOKEN });
    }
    expect(service.asked.at(-1)?.get('token')).to.equal(TOKEN);
  });

  it('a second Authorization header, which Node.js hides, is refused with invalid_request', async () => {
    const headers = [
      'host',
      api.url.host,
      'content-type',
      'application/json',
      'authorization',
      BEARER,
      'authorization',
      `Bearer ${TOKEN.toUpperCase()}`,
    ];
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = send(api.url, { method: 'POST', headers }, resolve);
      request.on('error', reject);
      request.end(QUERY);
    });
    answer.resume();
    const challenge = answer.headers['www-authenticate'] ?? null;
    expectInvalidRequest({ status: answer.statusCode ?? 0, challenge });
  });

  itLocally(
    'a value in the form of a token with a wrong checksum is invalid, and the service is not asked',
    async () => {
      for (const value of [`gate_at_${'x'.repeat(95)}`, `gate_mt_${'x'.repeat(49)}`, `gate_key_${'x'.repeat(49)}`]) {
        const answer = await post({ authorization: `Bearer ${value}` });
        expect(answer).to.include({ status: 401, challenge: INVALID_TOKEN });
      }
    },
  );

  it('refusals are the same for a fetch Request and for header names in any case', async () => {
    const url = 'https://api.example/graphql';
    const requests: [ReceivedRequest, number][] = [
      [new Request(url), 401],
      [new Request(`${url}?access_token=x`), 400],
      [new Request(url, { headers: { authorization: BEARER } }), 401],
      [new Request(url, { method: 'POST', body: new URLSearchParams('a=b') }), 400],
      [{ headers: { AUTHORIZATION: [BEARER, BEARER] } }, 400],
    ];
    for (const [request, status] of requests) {
      const { refusal } = await introspector.identify(request);
      expect(refusal?.status).to.equal(status);
      // A refusal can be passed to Response as it is.
      const response = new Response(refusal?.body, refusal);
      expect(response.status).to.equal(status);
      expect(response.headers.get('www-authenticate')).to.match(/^Bearer/);
    }
  });

  it('refusals refer to the metadata of the API, which name the service (RFC 9728)', () => {
    const issuer = 'https://auth.example';
    for (const [resource, path] of [
      ['https://api.example', ''],
      ['https://api.example/', ''],
      ['https://api.example:8443/v1/graphql', '/v1/graphql'],
      ['https://api.example/graphql?tenant=a', '/graphql?tenant=a'],
    ] as const) {
      const found = protectedResourceMetadata({ issuer, resource });
      const url = `${new URL(resource).origin}/.well-known/oauth-protected-resource${path}`;
      expect(found.document).to.deep.equal({
        resource,
        authorization_servers: [issuer],
        bearer_methods_supported: ['header'],
      });
      expect(found).to.include({ url, parameter: `resource_metadata="${url}"` });
      expect(found.path).to.equal(url.slice(new URL(url).origin.length));
    }
    for (const resource of ['api.example', 'ftp://api.example', 'https://api.example/#a']) {
      expect(() => protectedResourceMetadata({ issuer, resource })).to.throw(TypeError);
    }
  });
});

function expectInvalidRequest(answer: { status: number; challenge: string | null }): void {
  expect(answer.status).to.equal(400);
  expect(answer.challenge).to.match(/^Bearer error="invalid_request", error_description="[^"]+"$/);
}
