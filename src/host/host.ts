/** The Koa application: the middleware in order, what programs call, and what the pages say they answer. */
import Koa, { type Context, type Middleware } from 'koa';
import Router from 'koa-router';
import type { Logger } from 'pino';
import { requestFields } from '../base/current-request.ts';
import type { Settings } from '../config/settings.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { get, type Route } from '../pages/routes.ts';
import {
  answerPreflight,
  requireNavigation,
  requireNavigationOrSilence,
} from '../provider/cross-origin.ts';
import { ENDPOINT, metadata } from '../provider/endpoints.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import { serveAsset } from './assets.ts';
import { type ExactRoutes, exactRoutes, listed } from './exact-routes.ts';
import { answerErrorPages, answerJsonErrors } from './failures.ts';
import type { ObserveRequest } from './metrics/durations.ts';
import { requestLog } from './request-log.ts';
import { ignoreOpenIdParameters, refuseRepeatedHeaders, requireIssuerHost } from './requests.ts';
import { securityHeaders } from './security-headers.ts';

/** A connection that the client closed while it was answered, read to the end or not. */
const CLIENT_LEFT = ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE'];

export interface HostParts {
  readonly settings: Settings;
  readonly observeRequest: ObserveRequest;
  readonly log: Logger;
  readonly server: AuthorizationServer;
  readonly refreshSession: readonly Middleware[];
  /** Of the providers that people come from, by path. */
  readonly upstreamLogouts: ExactRoutes;
  readonly errorPage: ErrorPage;
  /** Before the pages: shows an answer that was kept. */
  readonly showAnswer: Middleware;
  /** Of all pages, in the order in which they are tried. */
  readonly pages: readonly Route[];
}

export interface Host {
  readonly app: Koa;
  /** Every path with its steps, after those that all requests take. */
  readonly routes: readonly Route[];
}

export function createHost(parts: HostParts): Host {
  const { settings, log, observeRequest } = parts;
  const { issuer } = settings;
  const headers = securityHeaders(issuer);
  const app = new Koa();
  // Cookies of the engine are read and written through this application's contexts as well.
  app.keys = [...settings.secrets.cookieKeys];
  // Only the addresses that our own proxies wrote are believed.
  app.proxy = settings.server.proxyHops > 0;
  app.maxIpsCount = settings.server.proxyHops;
  // What the issuer decides, no header may: links, redirects and Secure cookies follow from it.
  const { protocol, host } = new URL(issuer);
  Object.defineProperty(app.request, 'protocol', { value: protocol.slice(0, -1) });
  Object.defineProperty(app.request, 'host', { value: host });
  app.on('error', (error, ctx?: Context) => {
    // A client that leaves before the end of an answer, such as a stream, is no failure of ours.
    if (error.headerSent && CLIENT_LEFT.includes(error.code)) return;
    // Koa reports it after the request's own steps.
    log.error({ ...requestFields(ctx?.state), err: error }, 'request failed');
  });

  app.use(requestLog({ log, observeRequest }));
  app.use(refuseRepeatedHeaders);
  app.use(requireIssuerHost(issuer));
  const forPrograms = oauthRoutes(parts);
  app.use(exactRoutes([headers.data, answerJsonErrors({ issuer, log })], forPrograms));
  app.use(headers.page);
  app.use(answerErrorPages({ errorPage: parts.errorPage, issuer, log }));
  app.use(parts.showAnswer);
  const forBrowsers = [...parts.pages, get('/assets/:name', serveAsset)];
  const engine = engineRoutes(parts);
  const router = mounted(engine, forBrowsers);
  app.use(router.routes());
  // RFC 9110 §15.5.6: another method of a page is a 405 that says which methods there are.
  app.use(router.allowedMethods());
  return { app, routes: [...listed(forPrograms), ...engine, ...forBrowsers] };
}

/** What programs call: JSON, and no more middleware than that needs. */
function oauthRoutes(parts: HostParts): ExactRoutes {
  const { settings, server, refreshSession } = parts;
  const { issuer } = settings;
  const preflight = [answerPreflight('POST')];
  return {
    [ENDPOINT.introspection]: { POST: server.introspection },
    [ENDPOINT.introspectionChanges]: { GET: server.introspectionChanges },
    [ENDPOINT.token]: { POST: server.token, OPTIONS: preflight },
    [ENDPOINT.revokeCurrentToken]: { POST: server.revokeCurrentToken, OPTIONS: preflight },
    [ENDPOINT.revocation]: { POST: server.revocation, OPTIONS: preflight },
    [ENDPOINT.refreshSession]: { POST: refreshSession },
    ...parts.upstreamLogouts,
    [ENDPOINT.metadata]: {
      OPTIONS: [answerPreflight('GET')],
      GET: [
        function answerMetadata(ctx: Context) {
          ctx.set('Access-Control-Allow-Origin', '*');
          ctx.set('Cache-Control', 'public, max-age=3600');
          ctx.body = metadata(issuer);
        },
      ],
    },
  };
}

/** The authorization endpoint, which answers browsers. */
function engineRoutes({ settings, server }: HostParts): Route[] {
  const { pageToClient } = securityHeaders(settings.issuer);
  const { recognize } = server.clientTests;
  return [
    get(
      ENDPOINT.authorization,
      pageToClient,
      requireNavigationOrSilence,
      ignoreOpenIdParameters,
      recognize,
      server.engine,
    ),
    get(`${ENDPOINT.authorization}/:uid`, pageToClient, requireNavigation, server.engine),
  ];
}

function mounted(engine: readonly Route[], pages: readonly Route[]): Router {
  const router = new Router({ sensitive: true, strict: true });
  const add = ({ method, path, steps }: Route) => router.register(path, [method], [...steps]);
  // HEAD would issue a code as well, which nobody reads.
  for (const route of engine) add(route).methods = ['GET'];
  pages.forEach(add);
  return router;
}
