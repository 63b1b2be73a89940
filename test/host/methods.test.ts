/** What each address answers to a method it does not have, and which addresses do not exist. */
import { expect } from 'chai';
import { rawRequest } from '../support/raw-request.ts';
import { startsOn, type TestService } from '../support/service.ts';

describe('paths and methods', () => {
  const start = startsOn();
  let service: TestService;

  before(async () => {
    service = await start();
  });

  const ask = (method: string, path: string) => {
    const { port } = service.settings.server;
    return rawRequest(port, path, { method, headers: { host: `localhost:${port}` } });
  };

  const programs = {
    '/oauth/token': 'POST',
    '/oauth/token/revoke': 'POST',
    '/oauth/token/refresh': 'POST',
    '/oauth/introspect': 'POST',
    '/oauth/revoke': 'POST',
    '/.well-known/oauth-authorization-server': 'GET, HEAD',
  };

  it('an address for programs names the methods it has, as JSON', async () => {
    for (const [path, allowed] of Object.entries(programs)) {
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'POST']) {
        if (allowed.includes(method)) continue;
        const { status, headers, text } = await ask(method, path);
        expect(status, `${method} ${path}`).to.equal(405);
        expect(headers.get('allow')).to.equal(allowed);
        if (method === 'HEAD') continue;
        expect(JSON.parse(text)).to.include({
          error: 'invalid_request',
          error_description: `use ${allowed.replace(', ', ' or ')}`,
        });
      }
    }
  });

  const pages = {
    '/': 'HEAD, GET',
    '/oauth/authorize': 'GET',
    '/oauth/authorize/some-uid': 'GET',
    '/interaction/some-uid': 'HEAD, GET, POST',
    '/login': 'HEAD, GET, POST',
    '/logout': 'HEAD, GET, POST',
    '/profile': 'HEAD, GET',
    '/errors': 'HEAD, GET',
    '/errors/invalid_grant': 'HEAD, GET',
    '/assets/gatehouse.css': 'HEAD, GET',
  };

  it('an address for people names the methods it has, on a page', async () => {
    for (const [path, allowed] of Object.entries(pages)) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        if (allowed.includes(method)) continue;
        const { status, headers, text } = await ask(method, path);
        expect(status, `${method} ${path}`).to.equal(405);
        expect(headers.get('allow'), path).to.equal(allowed);
        expect(text).to.include('<h1>This address is not for visiting</h1>');
      }
    }
  });

  it('HEAD answers as GET does, without the body', async () => {
    for (const path of [
      '/login',
      '/errors',
      '/nothing',
      '/.well-known/oauth-authorization-server',
    ]) {
      const [head, get] = [await ask('HEAD', path), await ask('GET', path)];
      expect(head.status, path).to.equal(get.status);
      expect(head.headers.get('content-type')).to.equal(get.headers.get('content-type'));
      expect(head.text).to.equal('');
    }
  });

  it('HEAD never begins or answers an authorization request: its code would go nowhere', async () => {
    for (const path of ['/oauth/authorize', '/oauth/authorize/some-uid']) {
      const { status, headers } = await ask('HEAD', path);
      expect(status, path).to.equal(405);
      expect(headers.get('allow')).to.equal('GET');
      expect(headers.getSetCookie()).to.deep.equal([]);
    }
  });

  it('a second Host or Authorization header is a bad request, whatever they say', async () => {
    const { port } = service.settings.server;
    const operators = Number(new URL(service.operatorsUrl).port);
    const host = ['Host', `localhost:${port}`];
    const bearer = ['Authorization', 'Bearer x'];
    for (const [to, path] of [
      [port, '/.well-known/oauth-authorization-server'],
      [port, '/login'],
      [operators, '/metrics'],
    ] as const) {
      for (const headers of [
        [...host, ...host],
        [...host, ...bearer, 'authorization', 'Basic eDp4'],
      ]) {
        const { status, headers: answered } = await rawRequest(to, path, { headers });
        expect(status, `${path} ${headers}`).to.equal(400);
        expect(answered.get('x-request-id')).to.match(/^req_/);
      }
      expect((await rawRequest(to, path, { headers: [...host, ...bearer] })).status).not.to.equal(
        400,
      );
    }
  });

  it('what OpenID Connect and the engine would have besides is not there', async () => {
    const paths = [
      '/.well-known/openid-configuration',
      '/jwks',
      '/oauth/jwks',
      '/me',
      '/userinfo',
      '/request',
      '/reg',
      '/session/end',
      '/session/end/confirm',
      '/session/end/success',
      '/device',
      '/token',
      '/token/introspection',
      '/healthz',
      '/readyz',
      '/metrics',
    ];
    for (const path of paths) {
      for (const method of ['GET', 'POST']) {
        expect((await ask(method, path)).status, `${method} ${path}`).to.equal(404);
      }
    }
  });

  it('an address that is spelled almost right is another address', async () => {
    for (const path of [
      '/login/',
      '/Login',
      '/oauth/token/',
      '/OAUTH/token',
      '//login',
      '/login%2f',
    ]) {
      expect((await ask('GET', path)).status, path).to.equal(404);
    }
  });
});
