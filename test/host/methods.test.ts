/** The answers to unsupported methods, and to requests for paths that do not exist. */
import { expect } from 'chai';
import { ask as askFor } from '../support/oauth.ts';
import { createPerson, type Page } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
import { wordsOf } from '../support/words.ts';

describe('paths and methods', () => {
  const on = startSeeded();
  const ask = (method: string, path: string) => {
    const { port } = on.service.settings.server;
    return rawRequest(port, path, { method, headers: { host: `localhost:${port}` } });
  };
  const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'];

  const programs = {
    '/oauth/token': 'POST',
    '/oauth/token/revoke': 'POST',
    '/oauth/token/refresh': 'POST',
    '/oauth/introspect': 'POST',
    '/oauth/introspect/changes': 'GET, HEAD',
    '/oauth/revoke': 'POST',
    '/.well-known/oauth-authorization-server': 'GET, HEAD',
    '/openapi.json': 'GET, HEAD',
  };
  const pages = {
    '/': 'HEAD, GET',
    // Allow only GET: HEAD would begin or answer an authorization request, and the code would be lost.
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

  it('an unsupported method gets 405 with the header Allow, as JSON for programs and as a page for users', async () => {
    for (const [path, allowed] of Object.entries({ ...programs, ...pages })) {
      for (const method of METHODS) {
        if (allowed.includes(method)) continue;
        const { status, headers, text } = await ask(method, path);
        expect(status, `${method} ${path}`).to.equal(405);
        expect(headers.get('allow'), path).to.equal(allowed);
        expect(headers.getSetCookie(), path).to.deep.equal([]);
        if (method === 'HEAD') continue;
        if (path in pages) expect(headers.get('content-type'), path).to.match(/^text\/html/);
        else {
          const error_description = `use ${allowed.replace(', ', ' or ')}`;
          expect(JSON.parse(text)).to.include({ error: 'invalid_request', error_description });
        }
      }
    }
  });

  it('a HEAD request is answered like GET, without the body', async () => {
    for (const path of wordsOf('/login /errors /nothing /.well-known/oauth-authorization-server')) {
      const [head, get] = [await ask('HEAD', path), await ask('GET', path)];
      expect(head.status, path).to.equal(get.status);
      expect(head.headers.get('content-type')).to.equal(get.headers.get('content-type'));
      expect(head.text).to.equal('');
    }
  });

  it('a second Host or Authorization header is refused with 400, whatever it contains', async () => {
    const { port } = on.service.settings.server;
    const operators = Number(new URL(on.service.operatorsUrl).port);
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
      expect((await rawRequest(to, path, { headers: [...host, ...bearer] })).status).not.to.equal(400);
    }
  });

  it('unsupported endpoints of OpenID Connect and of oidc-provider are answered with 404', async () => {
    const paths = `/.well-known/openid-configuration /.well-known/oauth-authorization-server/
      /.well-known/jwks.json /jwks /oauth/jwks /me /userinfo /oauth/userinfo /request /reg /auth
      /session/end /session/end/confirm /session/end/success /device /token /token/introspection
      /backchannel /oauth /oauth/ /oauth/register /oauth/par /healthz /readyz /metrics`;
    for (const path of wordsOf(paths)) {
      for (const method of ['GET', 'POST']) {
        expect((await ask(method, path)).status, `${method} ${path}`).to.equal(404);
      }
    }
  });

  it('a path in a slightly different spelling is answered with 404', async () => {
    for (const path of wordsOf('/login/ /Login /oauth/token/ /OAUTH/token //login /login%2f')) {
      expect((await ask('GET', path)).status, path).to.equal(404);
    }
  });

  /** Asserts the heading, that the status is not printed, and the reference by which an operator finds the request. */
  function expectErrorPage({ status, html, headers }: Page, expected: number, heading: string) {
    expect(status).to.equal(expected);
    expect(html).to.include(`<h1>${heading}</h1>`);
    expect(html).to.not.include(`<dd>${expected}</dd>`);
    const reference = /data-copy="reference">([^<]+)</.exec(html)?.[1];
    expect(reference).to.match(/^req_/);
    expect(headers.get('x-request-id')).to.equal(reference);
    expect(html).not.to.match(/Error:|node_modules|\.ts:|\n +at /);
  }

  it('the page for an unknown URL links to the profile', async () => {
    const person = createPerson(on.issuer);
    for (const path of ['/nothing', '/profile/nothing', '/errors/nothing', '/errors/__proto__']) {
      const page = await person.get(path);
      expectErrorPage(page, 404, 'Page not found');
      expect(page.html).to.include('href="/profile"');
    }
  });

  it('for an unknown path under /oauth or /.well-known, programs get JSON and browsers get a page', async () => {
    const person = createPerson(on.issuer);
    const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    for (const path of ['/oauth/nothing', '/oauth/token/', '/.well-known/openid-configuration']) {
      for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.9']) {
        const answer = await askFor(new URL(path, on.issuer), { headers: { accept } });
        expect(answer.status).to.equal(404);
        expect(answer.body, answer.text).to.have.property('error', 'invalid_request');
        expect(answer.headers.get('vary')).to.include('Accept');
      }
      expectErrorPage(await person.get(path, browser), 404, 'Page not found');
    }
    const elsewhere = await askFor(new URL('/nothing', on.issuer), {
      headers: { accept: 'application/json' },
    });
    expect(elsewhere.headers.get('content-type')).to.include('text/html');
  });
});
