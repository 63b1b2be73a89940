/** Everything that a settings file decides once the stores are open: replaced as a whole by a reload. */
import type { RequestListener } from 'node:http';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { createOrganizationEnds } from '../accounts/access/organization-ends.ts';
import { createAccountMail } from '../accounts/mail/account-mail.ts';
import { createMailBeside, createSendMail } from '../accounts/mail/mail.ts';
import { createPasswordChanges } from '../accounts/passwords/changes.ts';
import { createRecoveryWaits } from '../accounts/passwords/recovery-waits.ts';
import { createShownOnce } from '../accounts/shown-once.ts';
import { createSignIn } from '../accounts/sign-in.ts';
import { createSignInLimits } from '../accounts/sign-in-limits.ts';
import { createStrongerSignIns } from '../accounts/stronger-sign-ins.ts';
import { createWaysIn } from '../accounts/ways-in.ts';
import { createDisconnect, type Endings } from '../authorizations/endings.ts';
import { createOrganizationEndings } from '../authorizations/organization-endings.ts';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import { createSeals } from '../base/seals.ts';
import type { Settings } from '../config/settings.ts';
import { createApiCalls } from '../host/api-calls.ts';
import { createFormTokens } from '../host/form-token.ts';
import { createHost } from '../host/host.ts';
import { createMetrics, type Metrics } from '../host/metrics/metrics.ts';
import { createOwnRequests } from '../host/own-requests.ts';
import { securityHeaders } from '../host/security-headers.ts';
import { createRender } from '../host/views.ts';
import { createErrorPage } from '../pages/error-page/error-page.ts';
import { createFirstSignIn } from '../pages/first-sign-in/question.ts';
import { keptAnswers } from '../pages/forms/kept-answers.ts';
import { createKeptForms } from '../pages/forms/kept-forms.ts';
import { createNotices } from '../pages/forms/notices.ts';
import { foundVisitor, type PageHost, visitorOf } from '../pages/page.ts';
import { routesOfPages } from '../pages/pages.ts';
import { createLinkRequests, FORGOT_PASSWORD } from '../pages/password/forgot-password.ts';
import { createEndingChoices } from '../pages/password/recovery.ts';
import type { Route } from '../pages/routes.ts';
import { refreshSession } from '../pages/sign-in/current-session.ts';
import { createDemands, type Demands } from '../pages/sign-in/demands.ts';
import { createKnownDevices } from '../pages/sign-in/known-devices.ts';
import { createPasskeySignIns } from '../pages/sign-in/passkeys.ts';
import { createPasswordCheck, refusePasswords } from '../pages/sign-in/password-check.ts';
import { createRecordSignIn } from '../pages/sign-in/signing-in.ts';
import { createWaitingSignIn } from '../pages/sign-in/waiting-sign-in.ts';
import { pageSteps } from '../pages/signed-in.ts';
import { createUpstream } from '../pages/upstream/upstream.ts';
import { fromOf } from '../pages/words/browser.ts';
import type { ChangeStreams } from '../provider/introspection-changes.ts';
import { createAuthorizationServer } from '../provider/provider.ts';
import { createSessionDemands } from '../provider/session-demands.ts';
import type { Database } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Registries } from './registries.ts';

/** What outlives a change of settings: the stores, and what remembers for them. */
export interface ApplicationParts extends Omit<Registries, 'close'> {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly database: Database;
  readonly store: TokenStore;
  readonly createAttemptLimit: CreateAttemptLimit;
  /** Outlive a reload, or every counter would begin anew. Made here where nobody looks. */
  readonly metrics?: Metrics;
  readonly endings: Endings;
  readonly changeStreams: ChangeStreams;
}

export interface Application {
  /** Answers every request of the public listener. */
  readonly handle: RequestListener;
  /** What it answers, path by path. */
  readonly routes: readonly Route[];
  /** Finishes what it does beside the requests. Those in flight may still be answered. */
  close(): Promise<void>;
}

/** Builds the provider, the pages and the host. Opens nothing. */
export function createApplication(parts: ApplicationParts): Application {
  const { settings, clock, log, database, store, accounts, activity, createAttemptLimit } = parts;
  const { limits, issuer, secrets } = settings;
  const { passwords } = settings.signIn;
  const { metrics = createMetrics() } = parts;
  const { outcomes } = metrics;
  const formTokens = createFormTokens({ issuer, keys: secrets.cookieKeys });
  // The server, which is made below, shows pages itself. Without a store a page names nobody.
  const seen = {
    visitorOf: (ctx: Context) =>
      visitorOf(ctx, { sessions: server.sessions, accounts }).catch(() => foundVisitor(ctx)),
  };
  const demandOn: Demands['of'] = (...asked) => demands.of(...asked);
  const render = createRender({ formTokens, ...seen, demandOn });
  const strongerSignIns = createStrongerSignIns({ database, clock, signIn: settings.signIn });
  const { providers } = settings.signIn;
  const sessionDemands = createSessionDemands({ ...strongerSignIns, providers });
  const recoveryWaits = createRecoveryWaits({
    ...parts,
    strongerSignIns,
    links: parts.passwordLinks,
    waitSeconds: settings.signIn.recoveryWaitSeconds,
  });
  const errorPage = createErrorPage({
    render,
    clients: parts.clients,
    async visitorOf(ctx) {
      const visitor = await seen.visitorOf(ctx);
      // The error page is shown even if the database does not answer.
      const mayAct = visitor && sessionDemands.mayAct(visitor.session, ctx).catch(() => false);
      return (await mayAct) ? visitor : undefined;
    },
  });
  const shownOnce = createShownOnce({ store, clock });
  const beside = createMailBeside({ log, outcomes });
  const sendMail = settings.mail && createSendMail(settings.mail);
  const mail = sendMail && createAccountMail({ issuer, accounts, sendMail, beside, clock });
  const server = createAuthorizationServer({
    ...parts,
    mail: mail && {
      tell: (ctx, accountId, about) =>
        mail.tell(accountId, 'new_connection', { ...fromOf(ctx), about }),
    },
    demands: sessionDemands,
    shownOnce,
    outcomes,
    problems: parts.clientProblems,
    requests: parts.clientRequests,
    showError: errorPage.showAuthorizationError,
    showHandover: (ctx, app) => render(ctx, 'handed-over', app),
  });

  const { interactions, sessions } = server;
  const host: PageHost = {
    ...formTokens,
    render,
    notices: createNotices({ issuer, keys: secrets.cookieKeys, clock, ...seen }),
    pageToClient: securityHeaders(issuer).pageToClient,
  };
  const devices = createKnownDevices({ issuer, keys: secrets.cookieKeys, clock });
  const hourlyLimit = (name: string, attempts: number) =>
    createAttemptLimit({ name, attempts, windowSeconds: 3_600, whenAway: 'count here', log });
  const linkRequests =
    passwords && sendMail
      ? createLinkRequests({ ...parts, issuer, beside, sendMail, hourlyLimit })
      : undefined;
  const forgotPasswordUrl = linkRequests && FORGOT_PASSWORD;
  const checkPassword = passwords
    ? createPasswordCheck({
        accounts,
        activity,
        devices,
        log,
        outcomes,
        forgotPasswordUrl,
        signIn: createSignIn({ database }),
        limits: createSignInLimits({ settings: limits, createAttemptLimit, log }),
      })
    : refusePasswords;
  const waiting = createWaitingSignIn({ issuer, interactions });
  const demands = createDemands({
    strongerSignIns,
    providers,
    sessionDemands,
    sessions,
    waiting,
  });
  const recordSignIn = createRecordSignIn({ activity, outcomes, devices, mail });
  const disconnect = createDisconnect(parts.connections, activity);
  const waysIn = createWaysIn({
    database,
    accounts,
    activity,
    kinds: [
      parts.identities.waysOf(settings.signIn.providers),
      parts.passkeys.waysOf(settings.signIn.passkeys),
    ],
  });
  const endingChoices = createEndingChoices({ ...parts, disconnect, waysIn });
  const forms = createShownOnce({ store, clock, seconds: 3_600 });
  const limit = hourlyLimit('kept_forms', 200);
  const keptForms = createKeptForms({ issuer, log, shownOnce: forms, limit });
  const firstSignIn = createFirstSignIn({
    ...parts,
    passwords,
    sessions,
    keptForms,
    endingChoices,
  });
  const upstream = createUpstream({
    ...parts,
    firstSignIn,
    demands,
    errorPage,
    outcomes,
    sessions,
    interactions,
    waiting,
    recordSignIn,
    disconnect,
    mail,
    notices: host.notices,
  });
  const passkeySignIns = settings.signIn.passkeys
    ? createPasskeySignIns({ ...parts, mail, outcomes, browserOf: formTokens.browserOf })
    : undefined;
  const answers = keptAnswers({ forms: keptForms, sessions, accounts, demands });
  const steps = pageSteps({
    host,
    demands,
    clock,
    accounts,
    sessions,
    checkPassword,
    passwords,
    upstream: upstream.signIns,
    passkeys: passkeySignIns,
    devices,
    errorPage,
    keptForms,
    keepAnswer: answers.keepAnswer,
  });
  const { app, routes } = createHost({
    settings,
    log,
    server,
    errorPage,
    showAnswer: answers.showAnswer,
    observeRequest: metrics.observeRequest,
    refreshSession: refreshSession({
      sessions,
      accounts,
      requireSameOrigin: formTokens.requireSameOrigin,
    }),
    upstreamLogouts: upstream.logouts,
    pages: routesOfPages({
      ...parts,
      demands,
      sessionDemands,
      host,
      steps,
      issuer,
      limits,
      sessions,
      interactions,
      shownOnce,
      checkPassword,
      devices,
      errorPage,
      forgotPasswordUrl,
      mail,
      keptForms,
      linkRequests,
      authorizations: server.authorizations,
      clientTests: server.clientTests,
      disconnect,
      organizationEndings: createOrganizationEndings({
        ...parts,
        ends: createOrganizationEnds(parts),
      }),
      waysIn,
      endingChoices,
      firstSignIn,
      passwordChanges: createPasswordChanges({
        ...parts,
        links: parts.passwordLinks,
        recoveryWaits,
      }),
      recovery: {
        waits: recoveryWaits,
        stopLinks: createSeals('stop recovery', secrets.cookieKeys),
        waitSeconds: settings.signIn.recoveryWaitSeconds,
      },
      waiting,
      upstream: upstream.signIns,
      passkeySignIns,
      passwords,
      recordSignIn,
      seals: createSeals('consent', secrets.cookieKeys),
      lifetimes: settings.tokens,
      postForm: createOwnRequests({ issuer, handler: () => handle }),
      api: settings.api && { ...settings.api, call: createApiCalls(settings.api) },
    }),
  });
  const handle = app.callback();

  return {
    handle,
    routes,
    async close() {
      await server.authorizations.close();
      await beside.close();
    },
  };
}
