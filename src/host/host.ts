/** The Koa application: the middleware in order, then every path on one screen. */
import Koa, { type Middleware } from 'koa';
import Router from 'koa-router';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { ErrorPage } from '../pages/error-page.ts';
import type { errorReferencePage } from '../pages/error-reference-page.ts';
import type { interactionPage } from '../pages/interaction.ts';
import { seeOther } from '../pages/page.ts';
import type { profilePage } from '../pages/profile.ts';
import type { signInPage } from '../pages/sign-in.ts';
import type { signOutPage } from '../pages/sign-out.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { readForm } from '../provider/form.ts';
import { metadata } from '../provider/metadata.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import { serveAsset } from './assets.ts';
import { answerErrorPages, answerJsonErrors } from './failures.ts';
import type { FormTokens } from './form-token.ts';
import { healthChecks } from './health.ts';
import { requestLog } from './request-log.ts';
import {
  answerJson,
  ignoreOpenIdParameters,
  methodNotAllowed,
  requireIssuerHost,
} from './requests.ts';
import { securityHeaders } from './security-headers.ts';

export interface HostParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly server: AuthorizationServer;
  readonly formTokens: FormTokens;
  readonly refreshSession: readonly Middleware[];
  readonly pages: {
    readonly signIn: ReturnType<typeof signInPage>;
    readonly signOut: ReturnType<typeof signOutPage>;
    readonly interaction: ReturnType<typeof interactionPage>;
    readonly profile: ReturnType<typeof profilePage>;
    readonly errorReference: ReturnType<typeof errorReferencePage>;
    readonly errorPage: ErrorPage;
  };
}

export function createHost(parts: HostParts): Koa {
  const { settings, log, clock } = parts;
  const app = new Koa();
  // Cookies of the engine are read and written through this application's contexts as well.
  app.keys = [...settings.secrets.cookieKeys];
  // Only the addresses that our own proxies wrote are believed.
  app.proxy = settings.server.proxyHops > 0;
  app.maxIpsCount = settings.server.proxyHops;
  // What the issuer decides, no header may: links, redirects and Secure cookies follow from it.
  const { protocol, host } = new URL(settings.issuer);
  Object.defineProperty(app.request, 'protocol', { value: protocol.slice(0, -1) });
  Object.defineProperty(app.request, 'host', { value: host });
  app.on('error', (error) => log.error({ err: error }, 'request failed'));

  app.use(requestLog({ log, clock }));
  app.use(requireIssuerHost(settings.issuer));
  app.use(oauthRoutes(parts).routes());
  app.use(securityHeaders(settings.issuer).page);
  app.use(answerErrorPages({ errorPage: parts.pages.errorPage, log }));
  app.use(pageRoutes(parts).routes());
  return app;
}

/** What programs call: JSON, and no more middleware than that needs. */
function oauthRoutes({ settings, log, server, refreshSession }: HostParts): Router {
  const { issuer } = settings;
  const router = new Router({ sensitive: true, strict: true });
  const json = [securityHeaders(issuer).data, answerJsonErrors({ issuer, log })];

  router.post(ENDPOINT.introspection, ...json, ...server.introspection);
  router.post(ENDPOINT.token, ...json, answerJson, server.engine);
  router.options(ENDPOINT.token, ...json, server.engine);
  router.post(ENDPOINT.revokeCurrentToken, ...json, ...server.revokeCurrentToken);
  router.post(ENDPOINT.revocation, ...json, ...server.revocation);
  router.post(ENDPOINT.refreshSession, ...json, ...refreshSession);
  router.get(ENDPOINT.metadata, ...json, (ctx) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=3600');
    ctx.body = metadata(issuer);
  });

  router.all(ENDPOINT.introspection, ...json, methodNotAllowed('POST'));
  router.all(ENDPOINT.token, ...json, methodNotAllowed('POST'));
  router.all(ENDPOINT.revokeCurrentToken, ...json, methodNotAllowed('POST'));
  router.all(ENDPOINT.revocation, ...json, methodNotAllowed('POST'));
  router.all(ENDPOINT.refreshSession, ...json, methodNotAllowed('POST'));
  router.all(ENDPOINT.metadata, ...json, methodNotAllowed('GET', 'HEAD'));
  return router;
}

/** What people visit. */
function pageRoutes({ settings, server, formTokens, pages }: HostParts): Router {
  const router = new Router({ sensitive: true, strict: true });
  const { pageToClient } = securityHeaders(settings.issuer);
  const form = [readForm, formTokens.requireFormToken];

  router.get(ENDPOINT.authorization, pageToClient, ignoreOpenIdParameters, server.engine);
  router.get(`${ENDPOINT.authorization}/:uid`, pageToClient, server.engine);
  router.all(ENDPOINT.authorization, methodNotAllowed('GET'));
  router.get(`${ENDPOINT.interaction}/:uid`, pageToClient, pages.interaction.show);
  router.post(`${ENDPOINT.interaction}/:uid`, pageToClient, ...form, pages.interaction.submit);

  router.get('/', (ctx) => seeOther(ctx, '/profile'));
  router.get('/profile', pages.profile.show);
  router.get('/login', pages.signIn.show);
  router.post('/login', ...form, pages.signIn.submit);
  router.get('/logout', pages.signOut.show);
  router.post('/logout', ...form, pages.signOut.submit);

  router.get('/errors', pages.errorReference.index);
  router.get('/errors/:code', pages.errorReference.show);
  router.get('/assets/:name', serveAsset);
  return router;
}

/**
 * The operators' listener, which is not the public one.
 *
 * @param isReady resolves when every store answers, rejects with the reason otherwise.
 */
export function createOperatorsHost(isReady: () => Promise<void>): Koa {
  const app = new Koa();
  const router = new Router();
  const health = healthChecks(isReady);
  router.get('/healthz', health.alive);
  router.get('/readyz', health.ready);
  app.use(router.routes());
  return app;
}
