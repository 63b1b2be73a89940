/** Everything that a settings file decides once the stores are open: replaced as a whole by a reload. */
import type { RequestListener } from 'node:http';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Access } from './accounts/access.ts';
import type { AccountRegistry } from './accounts/account-registry.ts';
import type { Activity } from './accounts/activity.ts';
import type { ApiKeys } from './accounts/api-keys.ts';
import { createSendMail } from './accounts/mail.ts';
import { createPasswordChanges } from './accounts/password-changes.ts';
import { createPasswordLinkRequests } from './accounts/password-link-requests.ts';
import type { PasswordLinks } from './accounts/password-links.ts';
import { createShownOnce } from './accounts/shown-once.ts';
import { createSignIn } from './accounts/sign-in.ts';
import { createSignInLimits } from './accounts/sign-in-limits.ts';
import type { CreateAttemptLimit } from './attempt-limits.ts';
import type { Connections } from './authorizations/connections.ts';
import { createDisconnect, type Endings } from './authorizations/endings.ts';
import type { ClientProblems } from './clients/client-problems.ts';
import type { ClientRegistry } from './clients/client-registry.ts';
import type { Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { createFormTokens } from './host/form-token.ts';
import { createHost } from './host/host.ts';
import { createMetrics, type Metrics } from './host/metrics.ts';
import { createOwnRequests } from './host/own-requests.ts';
import { createRender } from './host/views.ts';
import { activityPage } from './pages/activity.ts';
import { apiKeysPage } from './pages/api-keys.ts';
import { connectionsPage } from './pages/connections.ts';
import { consentPage } from './pages/consent.ts';
import { refreshSession } from './pages/current-session.ts';
import { createErrorPage } from './pages/error-page.ts';
import { errorReferencePage } from './pages/error-reference/error-reference.ts';
import { forgotPasswordPage } from './pages/forgot-password.ts';
import { interactionPage } from './pages/interaction.ts';
import { keptAnswers } from './pages/kept-answers.ts';
import { createKeptForms } from './pages/kept-forms.ts';
import { createKnownDevices } from './pages/known-devices.ts';
import { createNotices } from './pages/notices.ts';
import { oauthClientPage } from './pages/oauth-clients/client.ts';
import { oauthClientCreatedPage } from './pages/oauth-clients/created.ts';
import { oauthClientDeletePage } from './pages/oauth-clients/delete.ts';
import { oauthClientNewPage } from './pages/oauth-clients/new.ts';
import { oauthClientsPage } from './pages/oauth-clients/oauth-clients.ts';
import { oauthClientTestPage } from './pages/oauth-clients/test.ts';
import { foundVisitor, type PageHost, visitorOf } from './pages/page.ts';
import { passwordPage } from './pages/password.ts';
import { createPasswordCheck } from './pages/password-check.ts';
import { profilePage } from './pages/profile.ts';
import { securityPage } from './pages/security.ts';
import { signInPage } from './pages/sign-in.ts';
import { signOutPage } from './pages/sign-out.ts';
import { signedInSteps } from './pages/signed-in.ts';
import { createWaitingSignIn } from './pages/waiting-sign-in.ts';
import { createAuthorizationServer } from './provider/provider.ts';
import { createSeals } from './seals.ts';
import type { LastUsed } from './storage/last-used.ts';
import type { Database } from './storage/queries.ts';
import type { TokenStore } from './storage/token-store.ts';

/** What outlives a change of settings: the stores, and what remembers for them. */
export interface ApplicationParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly database: Database;
  readonly store: TokenStore;
  readonly createAttemptLimit: CreateAttemptLimit;
  /** Outlive a reload, or every counter would begin anew. Made here where nobody looks. */
  readonly metrics?: Metrics;
  readonly clients: ClientRegistry;
  readonly accounts: AccountRegistry;
  readonly access: Access;
  readonly connections: Connections;
  readonly activity: Activity;
  readonly endings: Endings;
  readonly apiKeys: ApiKeys;
  readonly passwordLinks: PasswordLinks;
  readonly clientProblems: ClientProblems;
  readonly lastUsed: LastUsed<'client' | 'client_secret' | 'connection' | 'api_key'>;
}

export interface Application {
  /** Answers every request of the public listener. */
  readonly handle: RequestListener;
  /** Finishes what it does beside the requests. Those in flight may still be answered. */
  close(): Promise<void>;
}

/** Builds the provider, the pages and the host. Opens nothing. */
export function createApplication(parts: ApplicationParts): Application {
  const { settings, clock, log, database, store, createAttemptLimit } = parts;
  const { clients, accounts, access, connections, activity, apiKeys, clientProblems } = parts;
  const { limits, issuer, secrets } = settings;
  const { metrics = createMetrics() } = parts;
  const { outcomes } = metrics;
  const { passwordLinks: links } = parts;

  const formTokens = createFormTokens({ issuer, keys: secrets.cookieKeys });
  // The server, which is made below, shows pages itself. Without a store a page names nobody.
  const seen = {
    visitorOf: (ctx: Context) =>
      visitorOf(ctx, { sessions: server.sessions, accounts }).catch(() => foundVisitor(ctx)),
  };
  const render = createRender({ formTokens, ...seen });
  const errorPage = createErrorPage({ render });
  const shownOnce = createShownOnce({ store, clock });
  const server = createAuthorizationServer({
    ...parts,
    shownOnce,
    outcomes,
    problems: clientProblems,
    showError: errorPage.showAuthorizationError,
  });

  const { interactions, sessions } = server;
  const disconnect = createDisconnect(connections, activity);
  const host: PageHost = {
    ...{ render, drawnFor: formTokens.drawnFor, ownerOfForm: formTokens.ownerOfForm },
    notices: createNotices({ issuer, keys: secrets.cookieKeys, clock, ...seen }),
  };
  const passwordChanges = createPasswordChanges({ database, accounts, links, activity });
  const devices = createKnownDevices({ issuer, keys: secrets.cookieKeys, clock });
  const hourlyLimit = (name: string, attempts: number) =>
    createAttemptLimit({ name, attempts, windowSeconds: 3_600, whenAway: 'count here', log });
  const requests =
    settings.mail &&
    createPasswordLinkRequests({
      ...{ issuer, accounts, links, log, outcomes },
      sendMail: createSendMail(settings.mail),
      perAccount: hourlyLimit('forgot_account', 3),
    });
  const forgotPasswordUrl = requests && '/forgot-password';
  const checkPassword = createPasswordCheck({
    ...{ accounts, activity, devices, log, outcomes, forgotPasswordUrl },
    signIn: createSignIn({ database }),
    limits: createSignInLimits({ settings: limits, createAttemptLimit, log }),
  });
  const keptForms = createKeptForms({
    ...{ issuer, log, shownOnce: createShownOnce({ store, clock, seconds: 3_600 }) },
    limit: hourlyLimit('kept_forms', 200),
  });
  const signedIn = signedInSteps({
    ...{ host, clock, accounts, sessions, checkPassword, errorPage, keptForms },
  });
  const ownClients = { host, clients, activity, shownOnce, limit: limits.clientsPerPerson };
  const waiting = createWaitingSignIn({ issuer, interactions });
  const signIn = signInPage({
    ...{ host, accounts, activity, sessions, interactions, checkPassword, forgotPasswordUrl },
    ...{ keptForms, waiting },
  });
  const seals = createSeals('consent', secrets.cookieKeys);
  const consent = consentPage({ host, access, connections, interactions, seals });
  const app = createHost({
    ...{ settings, log, server, formTokens, signedIn },
    answers: keptAnswers({ forms: keptForms, sessions, accounts }),
    observeRequest: metrics.observeRequest,
    refreshSession: refreshSession({
      ...{ sessions, accounts, requireSameOrigin: formTokens.requireSameOrigin },
    }),
    pages: {
      signIn,
      signOut: signOutPage({ host, accounts, sessions }),
      interaction: interactionPage({
        ...{ host, accounts, sessions, interactions, signIn, consent, errorPage },
      }),
      password: passwordPage({
        ...{ host, links, changes: passwordChanges, devices, forgotPasswordUrl },
        ...{ connections, disconnect, keptForms, waiting },
      }),
      forgotPassword:
        requests &&
        forgotPasswordPage({
          host,
          requests,
          waiting,
          perAddress: hourlyLimit('forgot_address', 30),
        }),
      profile: profilePage({ host, clock, access, clients, connections, apiKeys }),
      connections: connectionsPage({ host, access, connections, disconnect }),
      apiKeys: apiKeysPage({
        ...{ host, clock, apiKeys, shownOnce, limit: limits.apiKeysPerPerson },
      }),
      activity: activityPage({ host, activity }),
      security: securityPage({
        ...{ host, accounts, activity, sessions, connections, disconnect },
        ...{ passwordChanges, checkPassword, devices },
      }),
      oauthClients: oauthClientsPage(ownClients),
      oauthClientNew: oauthClientNewPage(ownClients),
      oauthClient: oauthClientPage({ ...ownClients, issuer, clock, problems: clientProblems }),
      oauthClientCreated: oauthClientCreatedPage(ownClients),
      oauthClientDelete: oauthClientDeletePage(ownClients),
      oauthClientTest: oauthClientTestPage({
        ...{ ...ownClients, issuer, access, server, endings: parts.endings },
        retryWindow: settings.tokens.retryWindowSeconds,
        postForm: createOwnRequests({ issuer, handler: () => handle }),
      }),
      errorReference: errorReferencePage({ host, lifetimes: settings.tokens }),
      errorPage,
    },
  });
  const handle = app.callback();

  return {
    handle,
    async close() {
      await server.authorizations.close();
      await requests?.close();
    },
  };
}
