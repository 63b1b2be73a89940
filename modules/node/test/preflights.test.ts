/** CORS preflights reach the CORS code of an API, web pages can read refusals, and Express answers them. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import express from 'express';
import fastify from 'fastify';
import { buildSchema } from 'graphql';
import Koa from 'koa';
import { atEndOfFile } from '../../../test/support/end-of-run.ts';
import { ask } from '../../../test/support/oauth.ts';
import { freePort, startProgram } from '../../../test/support/programs.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import {
  answerRefusals,
  type Introspector,
  protect,
  protectExpress,
  requireCaller,
  requireRight,
} from '../src/resource-server.ts';
import { writeGuideTo } from './guide.ts';
import { SERVERS as GRAPHQL_SERVERS } from './servers.ts';
import { API, bearer, introspectorOf, listen, type StandIn, startService, TOKEN } from './stand-in.ts';

/** Without types of its own in this repository. */
const require = createRequire(import.meta.url);
const express4: typeof express = require('express4');
const PAGE = 'https://app.example';
const PREFLIGHT = { origin: PAGE, 'access-control-request-method': 'POST' };
const CORS = {
  'Access-Control-Allow-Origin': PAGE,
  'Access-Control-Allow-Headers': 'authorization',
};

/** Servers whose CORS code comes after the guard; other paths than `/cors` read the caller. */
const SERVERS: Readonly<Record<string, (by: Introspector) => Promise<URL>>> = {
  Koa: async (introspector) => {
    const app = new Koa();
    app.silent = true;
    // Twice, as in an app that is mounted in another one.
    app.use(protect(introspector)).use(protect(introspector));
    app.use(async (ctx) => {
      if (ctx.path === '/cors') {
        ctx.status = 204;
        ctx.set(CORS);
      } else ctx.body = ctx.state.caller.subject;
    });
    return listen(app.callback());
  },
  'Express 4': async (introspector) => listen(expressApp(express4, introspector)),
  'Express 5': async (introspector) => listen(expressApp(express, introspector)),
  Fastify: async (introspector) => {
    const app = fastify();
    app.addHook('onRequest', requireCaller(introspector));
    app.all('/cors', async (_request, reply) => reply.code(204).headers(CORS).send());
    app.all('/caller', async (request) => request.caller.subject);
    atEndOfFile(() => app.close());
    return new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
  },
};

function expressApp(create: typeof express, introspector: Introspector): RequestListener {
  const app = create();
  app.use(protectExpress(introspector));
  app.all('/cors', (_request, response) => void response.status(204).set(CORS).end());
  app.all('/caller', (request, response) => void response.send(request.caller.subject));
  app.all('/stock', ({ caller }) => requireRight(caller, 'wh_b', 'read'));
  app.use(answerRefusals);
  return app;
}

describe('a CORS preflight', () => {
  let service: StandIn;
  let introspector: Introspector;

  before(async () => {
    const warehouses = [{ id: 'wh_a', name: 'Rotterdam', rights: ['read'] }];
    const organizations = [{ id: 'org_a', name: 'A', role: 'member', warehouses }];
    const person = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a', organizations };
    service = await startService((token) => (token === TOKEN ? person : undefined));
    introspector = introspectorOf(API, { issuer: service.origin });
  });

  for (const [name, start] of Object.entries(SERVERS)) {
    describe(name, () => {
      let url: URL;
      before(async () => {
        url = await start(introspector);
      });
      const send = (method: string, path: string, headers: Record<string, string>) =>
        ask(new URL(path, url), { method, headers });

      it('a preflight without credentials passes the guard and reaches the CORS code of the API', async () => {
        const { status, headers } = await send('OPTIONS', '/cors', PREFLIGHT);
        expect(status).to.equal(204);
        expect(headers.get('access-control-allow-origin')).to.equal(PAGE);
      });

      it('a handler that reads the caller of a preflight answers 401', async () => {
        const { status, headers } = await send('OPTIONS', '/caller', PREFLIGHT);
        expect(status).to.equal(401);
        expect(headers.get('www-authenticate')).to.equal('Bearer');
      });

      it('a request that is not a preflight needs a caller, whatever its headers are', async () => {
        const { origin } = PREFLIGHT;
        for (const [method, headers] of [
          ['POST', PREFLIGHT],
          ['OPTIONS', {}],
          ['OPTIONS', { origin }],
          ['OPTIONS', { 'access-control-request-method': 'POST' }],
          ['OPTIONS', { ...PREFLIGHT, authorization: `Bearer ${TOKEN}dead` }],
          ['OPTIONS', { ...PREFLIGHT, authorization: 'Basic YTpi' }],
        ] as const) {
          const { status } = await send(method, '/cors', headers);
          expect(status, `${method} ${JSON.stringify(headers)}`).to.equal(401);
        }
      });

      it('a web page may read why its request was refused, if the API allows the page', async () => {
        const answer = await send('GET', '/caller', { origin: PAGE });
        expect(answer.status).to.equal(401);
        const exposed = answer.headers.get('access-control-expose-headers');
        expect(exposed).to.equal('WWW-Authenticate, Retry-After');
        expect(answer.headers.has('access-control-allow-origin')).to.equal(false);
      });

      if (name.startsWith('Express')) {
        it('a request without the required right gets status, header and error code, but no stack trace', async () => {
          const { status, headers, body, text } = await send('GET', '/stock', { authorization: `Bearer ${TOKEN}` });
          expect(status, text).to.equal(403);
          expect(headers.get('www-authenticate')).to.match(/insufficient_scope/);
          expect(headers.get('cache-control')).to.equal('no-store');
          expect(body).to.have.nested.property('errors[0].extensions.code', 'FORBIDDEN');
          expect(text).to.not.match(/node_modules|\bat .*:\d/);
        });
      }

      it('a request with a valid token reaches the handler together with its caller', async () => {
        const { status, text } = await send('POST', '/caller', {
          authorization: `Bearer ${TOKEN}`,
        });
        expect({ status, text }).to.deep.equal({ status: 200, text: 'acc_a' });
      });
    });
  }

  it('the Express program of the guide runs on Express 4, survives a refusal and prints nothing', async () => {
    const project = temporaryDirectory('express4');
    writeGuideTo(project, ['express.mjs'], []);
    symlinkSync(path.dirname(require.resolve('express4')), path.join(project, 'node_modules/express'));
    const file = path.join(project, 'express.mjs');
    // The machine may be busy for longer than the second after which an API gives up.
    writeFileSync(file, readFileSync(file, 'utf8').replace('createIntrospector({', '$& timeoutMs: 20_000,'));
    const PORT = String(await freePort());
    const environment = { ISSUER: service.origin, CLIENT_ID: API.id, CLIENT_SECRET: API.secret, PORT };
    const program = startProgram(process.execPath, [file], { cwd: project, environment });
    const stock = new URL(`http://127.0.0.1:${PORT}/stock/`);
    await program.waitUntil(() => fetch(stock));
    for (const [warehouse, status] of [
      ['wh_b', 403],
      ['wh_a', 200],
    ] as const) {
      const answer = await ask(new URL(warehouse, stock), bearer(TOKEN));
      expect(answer.status, answer.text).to.equal(status);
    }
    await program.end('SIGTERM');
    expect(program.output()).to.equal('');
  });

  for (const name of ['Yoga 5', 'Apollo Server 5']) {
    it(`${name} answers a preflight itself, before its caller would be identified`, async () => {
      const schema = buildSchema('type Query { subject: String }');
      const url = await GRAPHQL_SERVERS[name]?.(schema, introspector);
      const { status, headers } = await ask(url as URL, { method: 'OPTIONS', headers: PREFLIGHT });
      expect(status).to.equal(204);
      expect(headers.get('access-control-allow-origin')).to.match(/^(\*|https:..app)/);
    });
  }

  it('a preflight causes no request to Gatehouse', async () => {
    const url = await SERVERS.Koa?.(introspector);
    const before = service.asked.length;
    await ask(new URL('/cors', url), { method: 'OPTIONS', headers: PREFLIGHT });
    expect(service.asked.length).to.equal(before);
  });
});
