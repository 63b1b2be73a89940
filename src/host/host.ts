/** The Koa application: its middleware in order, the routes for programs, and the pages. */
import { METHODS } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import Router from 'koa-router';
import type { Logger } from 'pino';
import type { Answer } from '../base/answer.ts';
import type { Settings } from '../config/settings.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { openApiDocument } from '../pages/openapi.ts';
import { get, type Route } from '../pages/routes.ts';
import { answerPreflight, requireNavigation, requireNavigationOrSilence } from '../provider/cross-origin.ts';
import { ENDPOINT, metadata } from '../provider/endpoints.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import type { Brand } from './brand.ts';
import type { RequestHandler } from './broken-requests.ts';
import { type ExactRoutes, exactRoutes, listRoutes, type RunSteps } from './exact-routes.ts';
import { answerErrorPages, answerJsonErrors, logKoaErrors } from './failures.ts';
import type { ObserveRequest } from './metrics/durations.ts';
import {
  type CheckRequest,
  checkHost,
  checkRepeatedHeaders,
  ignoreOpenIdParameters,
  requireChecked,
} from './request-checks.ts';
import { createRequestLog, requestLog } from './request-log.ts';
import { securityHeaders } from './security-headers.ts';

export interface HostParts {
  readonly settings: Settings;
  readonly observeRequest: ObserveRequest;
  readonly log: Logger;
  readonly server: AuthorizationServer;
  readonly refreshSession: readonly Middleware[];
  readonly errorPage: ErrorPage;
  /** Runs before the pages, and shows the stored result of a submitted form. */
  readonly showResult: Middleware;
  readonly brand: Pick<Brand, 'routes'>;
  /** The routes of the pages, in the order in which they are matched. */
  readonly pages: readonly Route[];
}

export type Host = ReturnType<typeof createHost>;

export function createHost(parts: HostParts) {
  const { settings, log, observeRequest } = parts;
  const { issuer } = settings;
  const headers = securityHeaders(issuer);
  const app = new Koa();
  // oidc-provider also uses these keys, because it sets its cookies through this application's contexts.
  app.keys = [...settings.secrets.cookieKeys];
  // Trust only the addresses that the operator's own proxies wrote.
  app.proxy = settings.server.proxyHops > 0;
  app.maxIpsCount = settings.server.proxyHops;
  // Take protocol and host from the issuer, never from a header: links, redirects and Secure cookies use them.
  const { protocol, host } = new URL(issuer);
  Object.defineProperty(app.request, 'protocol', { value: protocol.slice(0, -1) });
  Object.defineProperty(app.request, 'host', { value: host });
  logKoaErrors(app, log);

  app.use(requestLog({ log, observeRequest }));
  const checkIssuerHost = checkHost(issuer);
  const checkRequest: CheckRequest = (request) => checkRepeatedHeaders(request) ?? checkIssuerHost(request);
  app.use(headers.page);
  app.use(requireChecked(checkRequest));
  app.use(answerErrorPages({ errorPage: parts.errorPage, issuer, log }));
  app.use(refuseNul);
  app.use(parts.showResult);
  const forBrowsers = [...parts.pages, ...parts.brand.routes];
  const engine = engineRoutes(parts);
  const router = mounted(engine, forBrowsers);
  app.use(router.routes());
  // RFC 9110 §15.5.6: any other method of a page gets a 405 that lists the allowed ones.
  app.use(router.allowedMethods());

  // Most requests are for these routes, so they skip the work that Koa does for each request.
  const forPrograms = oauthRoutes(parts);
  const stepsOf = exactRoutes([answerJsonErrors({ issuer, log })], forPrograms);
  const logRequest = createRequestLog({ log, observeRequest });
  async function answerProgram(ctx: Context, steps: RunSteps<Answer>): Promise<void> {
    await logRequest(ctx, async () => {
      sendAnswer(ctx, checkRequest(ctx.req) ?? (await steps(ctx)), headers.data);
    });
    if (!ctx.headerSent) sendAnswer(ctx, uncaught(ctx), headers.data);
  }
  const showPage = app.callback();
  const handle: RequestHandler = (request, response) => {
    const ctx = app.createContext(request, response) as Context;
    const steps = stepsOf(ctx);
    return steps ? answerProgram(ctx, steps) : showPage(request, response);
  };
  /** Routes with their own steps. The steps that all requests share run before these. */
  const routes: readonly Route[] = [...listRoutes(forPrograms), ...engine, ...forBrowsers];
  return { handle, routes };
}

/**
 * Writes headers and body at once, because this is faster than setting each header by itself.
 * @param common the headers of every answer, unless the answer sets these itself
 */
function sendAnswer({ res, state, response }: Context, answer: Answer, common: Readonly<Record<string, string>>): void {
  // The caller may disconnect during the write, which is no failure of the service.
  res.on('error', ignore);
  const { body } = answer;
  if (!response.writable) {
    if (body instanceof Readable) body.destroy();
    res.end();
    return;
  }
  const status = answer.status ?? (body === undefined ? 204 : 200);
  const headers = { ...common, 'X-Request-Id': state.requestId, ...answer.headers };
  if (body instanceof Readable) {
    res.writeHead(status, headers);
    pipeline(body, res, ignore);
    return;
  }
  const text = typeof body === 'object' ? JSON.stringify(body) : (body ?? '');
  // A response with status 204 has no `Content-Length` (RFC 9110 §8.6).
  const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(text) };
  res.writeHead(status, { ...headers, ...length }).end(text);
}

function ignore(): void {}

/** Refuses paths with a NUL, because PostgreSQL accepts no value with a NUL, and no id contains one. */
function refuseNul(ctx: Context, next: Next): Promise<void> {
  if (ctx.path.startsWith('/profile/') && /%00|\0/.test(ctx.path)) ctx.throw(404);
  return next();
}

/** Returns the answer that the request log has put into the context after an uncaught error. */
const uncaught = ({ status, body }: Context): Answer => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8' },
  body: String(body),
});

/** Any web page may read these documents. */
const DOCUMENT_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Cache-Control': 'public, max-age=3600',
};

/** The routes for programs: JSON, with only the middleware that they need. */
function oauthRoutes(parts: HostParts): ExactRoutes {
  const { settings, server, refreshSession } = parts;
  const { issuer } = settings;
  const preflight = [answerPreflight('POST')];
  const openApi = JSON.stringify(openApiDocument(issuer));
  return {
    [ENDPOINT.introspection]: { POST: server.introspection },
    [ENDPOINT.introspectionChanges]: { GET: server.introspectionChanges },
    [ENDPOINT.verification]: { GET: server.verification },
    [ENDPOINT.token]: { POST: server.token, OPTIONS: preflight },
    [ENDPOINT.revokeCurrentToken]: { POST: server.revokeCurrentToken, OPTIONS: preflight },
    [ENDPOINT.revocation]: { POST: server.revocation, OPTIONS: preflight },
    [ENDPOINT.refreshSession]: { POST: refreshSession },
    [ENDPOINT.metadata]: {
      OPTIONS: [answerPreflight('GET')],
      GET: [
        function answerMetadata(): Answer {
          return { headers: DOCUMENT_HEADERS, body: metadata(issuer) };
        },
      ],
    },
    '/openapi.json': {
      OPTIONS: [answerPreflight('GET')],
      GET: [
        function answerOpenApi(): Answer {
          return { headers: DOCUMENT_HEADERS, body: openApi };
        },
      ],
    },
  };
}

/** The authorization endpoint, which answers browsers. */
function engineRoutes({ settings, server }: HostParts): Route[] {
  const { pageToClient } = securityHeaders(settings.issuer);
  return [
    get(ENDPOINT.authorization, pageToClient, requireNavigationOrSilence, ignoreOpenIdParameters, server.engine),
    get(`${ENDPOINT.authorization}/:uid`, pageToClient, requireNavigation, server.engine),
  ];
}

function mounted(engine: readonly Route[], pages: readonly Route[]): Router {
  // List all methods that Node parses, because the router answers any other method with 501.
  const router = new Router({ sensitive: true, strict: true, methods: METHODS });
  const add = ({ method, path, steps }: Route) => router.register(path, [method], [...steps]);
  // Allow only GET: a HEAD request would also issue a code, which the client could not read.
  for (const route of engine) add(route).methods = ['GET'];
  pages.forEach(add);
  return router;
}
