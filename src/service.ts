/** The only wiring: everything the service is made of, in order, on one screen. */
import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import { createAccess } from './accounts/access.ts';
import { createAccountRegistry } from './accounts/account-registry.ts';
import { createActivity } from './accounts/activity.ts';
import { createConnections } from './accounts/connections.ts';
import { seedDemo } from './accounts/demo.ts';
import { createSignIn } from './accounts/sign-in.ts';
import { createAttemptLimit } from './attempt-limits.ts';
import { createClientRegistry } from './clients/client-registry.ts';
import type { Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { createFormTokens } from './host/form-token.ts';
import { createHost, createOperatorsHost } from './host/host.ts';
import { render } from './host/views.ts';
import { consentPage } from './pages/consent.ts';
import { refreshSession } from './pages/current-session.ts';
import { createErrorPage } from './pages/error-page.ts';
import { errorReferencePage } from './pages/error-reference-page.ts';
import { interactionPage } from './pages/interaction.ts';
import { createPasswordCheck } from './pages/password-check.ts';
import { profilePage } from './pages/profile.ts';
import { signInPage } from './pages/sign-in.ts';
import { signOutPage } from './pages/sign-out.ts';
import { createAuthorizationServer } from './provider/provider.ts';
import { listenForChanges } from './storage/change-feed.ts';
import { startCleaning } from './storage/cleaning.ts';
import { openDatabase } from './storage/database.ts';
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
  const isSeeded = settings.demo && (await seedDemo({ database, clock }));

  const { limits, issuer, secrets } = settings;
  const errorPage = createErrorPage({ render });
  const server = createAuthorizationServer({
    settings,
    clock,
    log,
    store,
    clients,
    accounts,
    access,
    connections,
    clientFailures: createAttemptLimit({
      failures: limits.clientFailures,
      windowSeconds: limits.clientFailureWindowSeconds,
    }),
    showError: errorPage.showAuthorizationError,
  });

  const { interactions, sessions } = server;
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
  const signIn = signInPage({ host, accounts, activity, sessions, interactions, checkPassword });
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
    pages: {
      signIn,
      signOut: signOutPage({ host, accounts, sessions }),
      interaction: interactionPage({ interactions, signIn, consent, errorPage }),
      profile: profilePage({ host, accounts, access, sessions }),
      errorReference: errorReferencePage(host),
      errorPage,
    },
  });

  const cleaning = startCleaning({
    log,
    jobs: [store.removeExpired, connections.removeExpiredGrants],
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
    /** The address of the operators' listener. */
    operatorsUrl: addressOf(listeners[1]),
    /** Answers what is in flight, then closes everything. */
    async close(): Promise<void> {
      await Promise.all(listeners.map(drain));
      await cleaning.stop();
      await changes.close();
      await store.close();
      await database.close();
    },
  };
}

/** Milliseconds. Node's own limits would let 500 slow clients hold their sockets for minutes. */
const LIMITS = { headersTimeout: 10_000, requestTimeout: 15_000, keepAliveTimeout: 65_000 };
/** Longer than any request may take; what is still open then is cut. */
const DRAIN_LIMIT = 8_000;

function listen(handler: Parameters<typeof createServer>[1], port: number, host: string) {
  const server = createServer(LIMITS, handler);
  return new Promise<Server>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

async function drain(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_LIMIT);
  await closed;
  clearTimeout(cut);
}

function addressOf(server: Server | undefined): string {
  const address = server?.address();
  if (address === null || typeof address !== 'object') return '';
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${host}:${address.port}`;
}
