/** The Koa application: the middleware in order, then every path on one screen. */
import Koa, { type Context, type Middleware } from 'koa';
import Router from 'koa-router';
import type { Logger } from 'pino';
import type { Settings } from '../config/settings.ts';
import type { activityPage } from '../pages/activity.ts';
import type { apiKeysPage } from '../pages/api-keys.ts';
import type { connectionsPage } from '../pages/connections.ts';
import type { ErrorPage } from '../pages/error-page.ts';
import type { errorReferencePage } from '../pages/error-reference/error-reference.ts';
import type { forgotPasswordPage } from '../pages/forgot-password.ts';
import type { interactionPage } from '../pages/interaction.ts';
import type { keptAnswers } from '../pages/kept-answers.ts';
import type { oauthClientPage } from '../pages/oauth-clients/client.ts';
import type { oauthClientCreatedPage } from '../pages/oauth-clients/created.ts';
import type { oauthClientDeletePage } from '../pages/oauth-clients/delete.ts';
import type { oauthClientNewPage } from '../pages/oauth-clients/new.ts';
import type { oauthClientsPage } from '../pages/oauth-clients/oauth-clients.ts';
import type { oauthClientTestPage } from '../pages/oauth-clients/test.ts';
import { seeOther } from '../pages/page.ts';
import type { passwordPage } from '../pages/password.ts';
import type { profilePage } from '../pages/profile.ts';
import type { securityPage } from '../pages/security.ts';
import type { signInPage } from '../pages/sign-in.ts';
import type { signOutPage } from '../pages/sign-out.ts';
import type { Redraw, SignedInSteps } from '../pages/signed-in.ts';
import { answerPreflight } from '../provider/cross-origin.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { readForm } from '../provider/form.ts';
import { metadata } from '../provider/metadata.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import { serveAsset } from './assets.ts';
import { exactRoutes } from './exact-routes.ts';
import { answerErrorPages, answerJsonErrors } from './failures.ts';
import type { FormTokens } from './form-token.ts';
import { refuseRepeatedHeaders } from './repeated-headers.ts';
import { requestLog } from './request-log.ts';
import type { ObserveRequest } from './request-metrics.ts';
import { answerJson, ignoreOpenIdParameters, requireIssuerHost } from './requests.ts';
import { securityHeaders } from './security-headers.ts';

export interface HostParts {
  readonly settings: Settings;
  readonly observeRequest: ObserveRequest;
  readonly log: Logger;
  readonly server: AuthorizationServer;
  readonly formTokens: FormTokens;
  readonly refreshSession: readonly Middleware[];
  readonly signedIn: SignedInSteps;
  readonly answers: ReturnType<typeof keptAnswers>;
  readonly pages: {
    readonly signIn: ReturnType<typeof signInPage>;
    readonly signOut: ReturnType<typeof signOutPage>;
    readonly interaction: ReturnType<typeof interactionPage>;
    readonly password: ReturnType<typeof passwordPage>;
    /** Absent where no mail is sent. */
    readonly forgotPassword: ReturnType<typeof forgotPasswordPage> | undefined;
    readonly profile: ReturnType<typeof profilePage>;
    readonly oauthClients: ReturnType<typeof oauthClientsPage>;
    readonly oauthClientNew: ReturnType<typeof oauthClientNewPage>;
    readonly oauthClient: ReturnType<typeof oauthClientPage>;
    readonly oauthClientCreated: ReturnType<typeof oauthClientCreatedPage>;
    readonly oauthClientDelete: ReturnType<typeof oauthClientDeletePage>;
    readonly oauthClientTest: ReturnType<typeof oauthClientTestPage>;
    readonly connections: ReturnType<typeof connectionsPage>;
    readonly apiKeys: ReturnType<typeof apiKeysPage>;
    readonly activity: ReturnType<typeof activityPage>;
    readonly security: ReturnType<typeof securityPage>;
    readonly errorReference: ReturnType<typeof errorReferencePage>;
    readonly errorPage: ErrorPage;
  };
}

export function createHost(parts: HostParts): Koa {
  const { settings, log, observeRequest } = parts;
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
  app.on('error', (error, ctx?: Context) => {
    log.error({ requestId: ctx?.state.requestId, err: error }, 'request failed');
  });

  app.use(requestLog({ log, observeRequest }));
  app.use(refuseRepeatedHeaders);
  app.use(requireIssuerHost(settings.issuer));
  app.use(oauthRoutes(parts));
  app.use(securityHeaders(settings.issuer).page);
  app.use(answerErrorPages({ errorPage: parts.pages.errorPage, issuer: settings.issuer, log }));
  app.use(parts.answers.show);
  const pages = pageRoutes(parts);
  app.use(pages.routes());
  // RFC 9110 §15.5.6: another method of a page is a 405 that says which methods there are.
  app.use(pages.allowedMethods());
  return app;
}

/** What programs call: JSON, and no more middleware than that needs. */
function oauthRoutes({ settings, log, server, refreshSession }: HostParts): Middleware {
  const { issuer } = settings;
  const preflight = [answerPreflight('POST')];
  return exactRoutes([securityHeaders(issuer).data, answerJsonErrors({ issuer, log })], {
    [ENDPOINT.introspection]: { POST: server.introspection },
    [ENDPOINT.token]: { POST: [answerJson, ...server.token], OPTIONS: preflight },
    [ENDPOINT.revokeCurrentToken]: { POST: server.revokeCurrentToken, OPTIONS: preflight },
    [ENDPOINT.revocation]: { POST: server.revocation, OPTIONS: preflight },
    [ENDPOINT.refreshSession]: { POST: refreshSession },
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
  });
}

/** What people visit. */
function pageRoutes({ settings, server, formTokens, signedIn, answers, pages }: HostParts): Router {
  const router = new Router({ sensitive: true, strict: true });
  const { pageToClient } = securityHeaders(settings.issuer);
  const form = [readForm, formTokens.requireFormToken, answers.keep];
  const own = signedIn.requireSignedIn;
  const ownForm = [...form, own, signedIn.requireOwnForm()];
  const typedForm = (redraw: Redraw) => [...form, own, signedIn.requireOwnForm(redraw)];
  const sensitive = [...ownForm, signedIn.requireRecentSignIn];

  router.get(
    ENDPOINT.authorization,
    ...[pageToClient, ignoreOpenIdParameters, server.clientTests.recognize, server.engine],
  );
  router.get(`${ENDPOINT.authorization}/:uid`, pageToClient, server.engine);
  // HEAD would issue a code as well, which nobody reads.
  for (const layer of router.stack) layer.methods = ['GET'];
  router.get(`${ENDPOINT.interaction}/:uid`, pageToClient, pages.interaction.show);
  router.post(`${ENDPOINT.interaction}/:uid`, pageToClient, ...form, pages.interaction.submit);

  router.get('/', (ctx) => seeOther(ctx, '/profile'));
  router.get('/login', pages.signIn.show);
  router.post('/login', ...form, pages.signIn.submit);
  router.get('/logout', pages.signOut.show);
  router.post('/logout', ...form, pages.signOut.submit);
  router.get('/password', pages.password.show);
  router.post('/password', ...form, pages.password.submit);
  if (pages.forgotPassword) {
    router.get('/forgot-password', pages.forgotPassword.show);
    router.post('/forgot-password', ...form, pages.forgotPassword.submit);
  }

  router.get('/profile', own, pages.profile.show);

  const client = '/profile/oauth-clients/:id';
  const { oauthClientNew, oauthClient, oauthClientDelete } = pages;
  const { requireRecentSignIn } = signedIn;
  router.get('/profile/oauth-clients', own, pages.oauthClients.show);
  router.get('/profile/oauth-clients/new', own, oauthClientNew.show);
  router.post(
    '/profile/oauth-clients/new',
    ...typedForm(oauthClientNew.redraw),
    ...[oauthClientNew.check, requireRecentSignIn, oauthClientNew.create],
  );
  router.get(ENDPOINT.clientTest, own, pages.oauthClientTest.finish);
  // Before anybody looks whose client it is: that is said to who the form was drawn for.
  router.post(client, ...typedForm(oauthClient.redraw));
  router.post(`${client}/*rest`, ...ownForm);
  router.all(`${client}{/*rest}`, own, oauthClient.requireOwn);
  router.get(client, oauthClient.show);
  router.post(client, oauthClient.check, requireRecentSignIn, oauthClient.save);
  router.get(`${client}/created`, pages.oauthClientCreated.show);
  router.get(`${client}/rotate-secret`, oauthClient.backToClient);
  router.post(`${client}/rotate-secret`, requireRecentSignIn, oauthClient.rotateSecret);
  router.get(`${client}/remove-secret`, oauthClient.askToRemoveSecret);
  router.post(`${client}/remove-secret`, requireRecentSignIn, oauthClient.removeSecret);
  router.get(`${client}/test`, pages.oauthClientTest.show);
  router.post(`${client}/test`, pages.oauthClientTest.begin);
  router.get(`${client}/delete`, oauthClientDelete.show);
  router.post(
    `${client}/delete`,
    ...[oauthClientDelete.check, requireRecentSignIn, oauthClientDelete.submit],
  );

  router.get('/profile/connections', own, pages.connections.list);
  router.get('/profile/connections/disconnect-all', own, pages.connections.askToDisconnectAll);
  router.post('/profile/connections/disconnect-all', ...ownForm, pages.connections.disconnectAll);
  router.get('/profile/connections/:id', own, pages.connections.show);
  router.get('/profile/connections/:id/disconnect', own, pages.connections.askToDisconnect);
  router.post('/profile/connections/:id/disconnect', ...ownForm, pages.connections.disconnect);

  router.get('/profile/api-keys', own, pages.apiKeys.show);
  router.post(
    '/profile/api-keys',
    ...typedForm(pages.apiKeys.redraw),
    ...[requireRecentSignIn, pages.apiKeys.create],
  );
  router.get('/profile/api-keys/created', own, pages.apiKeys.showCreated);
  router.get('/profile/api-keys/:id/revoke', own, pages.apiKeys.askToRevoke);
  router.post('/profile/api-keys/:id/revoke', ...sensitive, pages.apiKeys.revoke);

  router.get('/profile/activity', own, pages.activity.show);

  router.get('/profile/security', own, pages.security.show);
  // Where somebody lands who had to sign in before the form was taken.
  router.get('/profile/security/password', (ctx) =>
    seeOther(ctx, `/profile/security${ctx.search}`),
  );
  router.get('/profile/security/sign-out-everywhere', (ctx) => seeOther(ctx, '/profile/security'));
  router.post('/profile/security/password', ...ownForm, pages.security.changePassword);
  router.post(
    '/profile/security/sign-out-everywhere',
    ...ownForm,
    pages.security.signOutEverywhere,
  );

  router.get('/errors', pages.errorReference.index);
  router.get('/errors/:code', pages.errorReference.show);
  router.get('/assets/:name', serveAsset);
  return router;
}
