/** The only wiring: everything the service is made of, in order, on one screen. */
import type { Logger } from 'pino';
import { createAccess } from './accounts/access.ts';
import { createAccountRegistry } from './accounts/account-registry.ts';
import { createActivity } from './accounts/activity.ts';
import { createApiKeys } from './accounts/api-keys.ts';
import { createConnections } from './accounts/connections.ts';
import { seedDemo } from './accounts/demo.ts';
import { createSendMail } from './accounts/mail.ts';
import { createPasswordChanges } from './accounts/password-changes.ts';
import { createPasswordLinkRequests } from './accounts/password-link-requests.ts';
import { createPasswordLinks } from './accounts/password-links.ts';
import { createShownOnce } from './accounts/shown-once.ts';
import { createSignIn } from './accounts/sign-in.ts';
import { createAttemptLimit } from './attempt-limits.ts';
import { createClientProblems } from './clients/client-problems.ts';
import { createClientRegistry } from './clients/client-registry.ts';
import { writeClientUses, writeSecretUses } from './clients/client-uses.ts';
import type { Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { createFormTokens } from './host/form-token.ts';
import { createHost, createOperatorsHost } from './host/host.ts';
import { addressOf, drain, listen } from './host/listeners.ts';
import { createOwnRequests } from './host/own-requests.ts';
import { render } from './host/views.ts';
import { activityPage } from './pages/activity.ts';
import { apiKeysPage } from './pages/api-keys.ts';
import { connectionsPage } from './pages/connections.ts';
import { consentPage } from './pages/consent.ts';
import { refreshSession } from './pages/current-session.ts';
import { createErrorPage } from './pages/error-page.ts';
import { errorReferencePage } from './pages/error-reference-page.ts';
import { forgotPasswordPage } from './pages/forgot-password.ts';
import { interactionPage } from './pages/interaction.ts';
import { oauthClientPage } from './pages/oauth-client.ts';
import { oauthClientCreatedPage } from './pages/oauth-client-created.ts';
import { oauthClientDeletePage } from './pages/oauth-client-delete.ts';
import { oauthClientNewPage } from './pages/oauth-client-new.ts';
import { oauthClientTestPage } from './pages/oauth-client-test.ts';
import { oauthClientsPage } from './pages/oauth-clients.ts';
import { passwordPage } from './pages/password.ts';
import { createPasswordCheck } from './pages/password-check.ts';
import { profilePage } from './pages/profile.ts';
import { securityPage } from './pages/security.ts';
import { signInPage } from './pages/sign-in.ts';
import { signOutPage } from './pages/sign-out.ts';
import { signedInSteps } from './pages/signed-in.ts';
import { createAuthorizationServer } from './provider/provider.ts';
import { listenForChanges } from './storage/change-feed.ts';
import { startCleaning } from './storage/cleaning.ts';
import { openDatabase } from './storage/database.ts';
import { createLastUsed } from './storage/last-used.ts';
import { requireSchema } from './storage/migrate.ts';
import { openTokenStore } from './storage/open-token-store.ts';

export interface ServiceParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * Opens the stores, builds every part and listens.
 *
 * @throws EmbeddedPostgresInUse, MigrationsPending, UnsafeRedis or StorageUnavailable, each with
 *   its remedy, before anything listens.
 */
export async function startService({ settings, clock, log }: ServiceParts) {
  const database = await openDatabase({ ...settings.storage, sharing: 'own' });
  await requireSchema(database, settings.storage);
  const store = await openTokenStore({ ...settings.storage, database, clock });
  const changes = await listenForChanges(database);

  const clients = createClientRegistry({ database, changes, clock });
  const accounts = createAccountRegistry({ database, changes, clock });
  const access = createAccess({ database, changes });
  const connections = createConnections({ database, clock });
  const activity = createActivity({ database, clock });
  const apiKeys = createApiKeys({
    ...{ database, changes, clock, activity },
    limit: settings.limits.apiKeysPerPerson,
  });
  const links = createPasswordLinks({ database, clock, accounts, activity });
  const passwordChanges = createPasswordChanges({ database, accounts, links, activity });
  const clientProblems = createClientProblems({ database, clock, log });
  const lastUsed = createLastUsed({
    clock,
    log,
    writers: {
      client: writeClientUses(database),
      client_secret: writeSecretUses(database),
      connection: connections.writeUses,
      api_key: apiKeys.writeUses,
    },
  });
  const isSeeded = settings.demo && (await seedDemo({ database, clock }));

  const { limits, issuer, secrets } = settings;
  const errorPage = createErrorPage({ render });
  const shownOnce = createShownOnce({ store, clock });
  const server = createAuthorizationServer({
    settings,
    clock,
    log,
    store,
    clients,
    accounts,
    access,
    connections,
    apiKeys,
    activity,
    shownOnce,
    clientFailures: createAttemptLimit({
      failures: limits.clientFailures,
      windowSeconds: limits.clientFailureWindowSeconds,
    }),
    problems: clientProblems,
    lastUsed,
    showError: errorPage.showAuthorizationError,
  });

  const { interactions, sessions, disconnections } = server;
  const formTokens = createFormTokens({ issuer, keys: secrets.cookieKeys });
  const host = { render, formToken: formTokens.formToken };
  const checkPassword = createPasswordCheck({
    signIn: createSignIn({ database }),
    accounts,
    activity,
    failures: createAttemptLimit({
      failures: limits.signInFailures,
      windowSeconds: limits.signInFailureWindowSeconds,
    }),
    log,
  });
  const requests =
    settings.mail &&
    createPasswordLinkRequests({
      ...{ issuer, accounts, links, log },
      sendMail: createSendMail(settings.mail),
      perAddress: createAttemptLimit({ failures: 3, windowSeconds: 3_600 }),
    });
  const forgotPasswordUrl = requests && '/forgot-password';
  const signedIn = signedInSteps({ host, clock, accounts, sessions, checkPassword });
  const ownClients = { host, clients, activity, shownOnce, limit: limits.clientsPerPerson };
  const signIn = signInPage({
    ...{ host, accounts, activity, sessions, interactions, checkPassword, forgotPasswordUrl },
  });
  const consent = consentPage({ host, accounts, access, activity, connections, interactions });
  const app = createHost({
    settings,
    clock,
    log,
    server,
    formTokens,
    refreshSession: refreshSession({
      sessions,
      accounts,
      requireSameOrigin: formTokens.requireSameOrigin,
    }),
    signedIn,
    pages: {
      signIn,
      signOut: signOutPage({ host, accounts, sessions }),
      interaction: interactionPage({ interactions, signIn, consent, errorPage }),
      password: passwordPage({ host, links, changes: passwordChanges, forgotPasswordUrl }),
      forgotPassword: requests && forgotPasswordPage({ host, requests }),
      profile: profilePage({ host, clock, access, clients, connections, apiKeys }),
      connections: connectionsPage({ host, access, connections, disconnections }),
      apiKeys: apiKeysPage({
        ...{ host, clock, apiKeys, shownOnce, limit: limits.apiKeysPerPerson },
      }),
      activity: activityPage({ host, activity }),
      security: securityPage({
        ...{ host, accounts, activity, sessions, connections, disconnections },
        ...{ passwordChanges, checkPassword },
      }),
      oauthClients: oauthClientsPage(ownClients),
      oauthClientNew: oauthClientNewPage(ownClients),
      oauthClient: oauthClientPage({ ...ownClients, issuer, clock, problems: clientProblems }),
      oauthClientCreated: oauthClientCreatedPage(ownClients),
      oauthClientDelete: oauthClientDeletePage({ ...ownClients, grants: server.grants }),
      oauthClientTest: oauthClientTestPage({
        ...{ ...ownClients, issuer, access, server },
        retryWindow: settings.tokens.retryWindowSeconds,
        postForm: createOwnRequests({ issuer, handler: () => app.callback() }),
      }),
      errorReference: errorReferencePage(host),
      errorPage,
    },
  });

  const before = (seconds: number): Date => new Date(clock() - seconds * 1000);
  const cleaning = startCleaning({
    log,
    jobs: [
      store.removeExpired,
      connections.removeExpiredGrants,
      clientProblems.removeExpired,
      apiKeys.removeExpired,
      links.removeExpired,
      (limit) => activity.removeOlderThan(before(settings.activity.retentionSeconds), limit),
    ],
  });
  const operatorsApp = createOperatorsHost(async () => {
    await Promise.all([store.ping(), database.ping()]);
  });
  const listeners = [
    await listen(app.callback(), settings.server.port, settings.server.host),
    await listen(
      operatorsApp.callback(),
      settings.server.operatorsPort,
      settings.server.operatorsHost,
    ),
  ];

  return {
    settings,
    isSeeded,
    database,
    store,
    clients,
    accounts,
    access,
    connections,
    activity,
    apiKeys,
    passwordLinks: links,
    clientProblems,
    lastUsed,
    /** The address of the operators' listener. */
    operatorsUrl: addressOf(listeners[1]),
    /** Answers what is in flight, then closes everything. */
    async close(): Promise<void> {
      await Promise.all(listeners.map(drain));
      await cleaning.stop();
      await Promise.all([clientProblems.close(), lastUsed.close(), requests?.close()]);
      await changes.close();
      await store.close();
      await database.close();
    },
  };
}
