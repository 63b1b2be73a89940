/** The OpenAPI document, compared with the routes and with real answers. */
import { readdirSync, readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { documentedErrors } from '../../src/pages/error-reference.ts';
import { clientCredentials, exchangeCode, introspect, refresh, revokeCurrent } from '../support/oauth.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';

/** Routes below these paths that no client or API calls. */
const NOT_FOR_CLIENTS = ['GET /oauth/authorize/:uid', 'POST /oauth/token/refresh', 'GET /.well-known/change-password'];

describe('the OpenAPI document describes every API route and its real answers', () => {
  const on = startSeeded();
  const read = async (path: string, headers: Record<string, string> = {}) =>
    fetch(on.issuer + path, { headers: { accept: 'application/json', ...headers } });
  // biome-ignore lint/suspicious/noExplicitAny: JSON documents
  const json = async (path: string): Promise<any> => (await read(path)).json();
  let document: Awaited<ReturnType<typeof json>>;

  before(async () => {
    document = await json('/openapi.json');
  });

  it('the document is valid OpenAPI 3.1, for this address and version, and every web page may read it', async () => {
    const checked = await new Validator().validate(structuredClone(document));
    expect(checked).to.deep.include({ valid: true });
    expect(document.openapi).to.match(/^3\.1\./);
    expect(document.servers).to.deep.equal([{ url: on.issuer }]);
    const { headers } = await read('/openapi.json', { origin: 'https://app.example' });
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
    const metadata = await json('/.well-known/oauth-authorization-server');
    expect(metadata.service_documentation).to.equal(document.externalDocs.url);
    expect((await fetch(metadata.service_documentation)).status).to.equal(200);
  });

  it('the document lists exactly the routes that clients and APIs call', () => {
    const described = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':param')}`),
    );
    const routes = on.service
      .routes()
      .filter(({ method, path }) => method !== 'OPTIONS' && /^\/(oauth|\.well-known|errors|openapi)\b/.test(path))
      .map(({ method, path }) => `${method} ${path}`)
      .filter((route) => !NOT_FOR_CLIENTS.includes(route))
      .map((route) => route.replace(/:\w+/g, ':param'));
    expect(described.sort()).to.deep.equal(routes.sort());
  });

  it('real answers have the statuses, errors and fields that the document describes', async () => {
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema(document, 'openapi');
    const expectDescribed = (path: string, { status, body }: { status: number; body: unknown }) => {
      const [method] = Object.keys(document.paths[path]);
      const at = ['paths', path, method, 'responses', status, 'content', 'application/json', 'schema'];
      const pointer = at.map((part) => String(part).replaceAll('/', '~1')).join('/');
      const isValid = ajv.validate({ $ref: `openapi#/${pointer}` }, body);
      expect(isValid, `${path} ${status}: ${JSON.stringify(body)} ${ajv.errorsText()}`).to.equal(true);
    };
    const { confidential, machine, resourceServer } = on.clients;
    const { issuer } = on;
    const tokens = await exchangeCode(issuer, confidential, await on.partner.code(confidential));
    const token = '/oauth/token';
    expectDescribed(token, tokens);
    const { access_token: accessToken, refresh_token: refreshToken } = tokens.body;
    expectDescribed(token, await refresh(issuer, confidential, String(refreshToken)));
    const ofMachine = await clientCredentials(issuer, machine);
    expectDescribed(token, ofMachine);
    // RFC 6749 §4.4.3: a machine client gets no refresh token.
    expect(ofMachine.body).to.have.all.keys('access_token', 'expires_in', 'token_type');
    expectDescribed(token, await exchangeCode(issuer, confidential, 'gate_ac_nothing'));
    expectDescribed(token, await clientCredentials(issuer, confidential));
    expectDescribed(token, await exchangeCode(issuer, { ...confidential, secret: 'wrong' }, 'x'));
    const asked = '/oauth/introspect';
    expectDescribed(asked, await introspect(issuer, resourceServer, String(accessToken)));
    expectDescribed(asked, await introspect(issuer, resourceServer, 'nothing'));
    expectDescribed(asked, await introspect(issuer, resourceServer, ''));
    // RFC 6749 §5.2 defines no 413.
    expectDescribed(asked, await introspect(issuer, resourceServer, 'x'.repeat(100_000)));
    expectDescribed('/oauth/token/revoke', await revokeCurrent(issuer, 'nothing'));
    const metadata = '/.well-known/oauth-authorization-server';
    const published = await read(metadata);
    expectDescribed(metadata, { status: published.status, body: await published.json() });
  });

  it('the documented errors include every code that the module for APIs can return', async () => {
    const directory = new URL('../../modules/node/src/', import.meta.url);
    const source = readdirSync(directory)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(new URL(name, directory), 'utf8'))
      .join('\n');
    const union = (name: string): string[] => {
      const [, members = ''] = new RegExp(`type ${name} =([^;]*);`).exec(source) ?? [];
      return [...members.matchAll(/'(\w+)'/g)].map(([, code = '']) => code);
    };
    const inHeaders = [...source.matchAll(/'(invalid_\w+|insufficient_scope)'/g)].map(([, code = '']) => code);
    const emitted = new Set([...union('RefusalCode'), ...union('FailureReason'), ...inHeaders]);
    expect([...emitted]).to.have.length.above(10);
    expect(documentedErrors).to.include.members([...emitted]);
    for (const code of emitted) expect((await read(`/errors/${code}`)).status, code).to.equal(200);
  });

  it('a web page can read the 404 for metadata that does not exist', async () => {
    const headers = { origin: 'https://app.example', host: new URL(on.issuer).host };
    const path = '/.well-known/openid-configuration';
    const answer = await rawRequest(on.service.settings.server.port, path, { headers });
    expect(answer.status).to.equal(404);
    expect(Object.fromEntries(answer.headers)['access-control-allow-origin']).to.equal('*');
  });
});
