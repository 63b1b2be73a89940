/** The only wiring: the stores, what remembers for them, the application, and who may reach it. */
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { createAccess } from './accounts/access.ts';
import { createAccountRegistry } from './accounts/account-registry.ts';
import { createActivity } from './accounts/activity.ts';
import { createApiKeys } from './accounts/api-keys.ts';
import { createConnections } from './accounts/connections.ts';
import { seedDemo } from './accounts/demo.ts';
import { createPasswordLinks } from './accounts/password-links.ts';
import { createApplication } from './application.ts';
import { createClientProblems } from './clients/client-problems.ts';
import { createClientRegistry } from './clients/client-registry.ts';
import { writeClientUses, writeSecretUses } from './clients/client-uses.ts';
import type { Clock } from './clock.ts';
import { type Reload, reloaded } from './config/reload.ts';
import type { Settings } from './config/settings.ts';
import { createOperatorsHost } from './host/host.ts';
import { addressOf, drain, listen } from './host/listeners.ts';
import { listenForChanges } from './storage/change-feed.ts';
import { startCleaning } from './storage/cleaning.ts';
import { openDatabase } from './storage/database.ts';
import { createLastUsed } from './storage/last-used.ts';
import { requireSchema } from './storage/migrate.ts';
import { openTokenStore } from './storage/open-token-store.ts';

export interface ServiceParts {
  readonly settings: Settings;
  /** The settings as they are now, for a reload. @throws ConfigurationProblems */
  readonly loadSettings: () => Settings;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * Opens the stores, builds every part and listens. What fails half-way leaves nothing open.
 *
 * @throws EmbeddedPostgresInUse, MigrationsPending, UnsafeRedis or StorageUnavailable, each with
 *   its remedy, before anything listens.
 */
export async function startService({ settings, loadSettings, clock, log }: ServiceParts) {
  await using opened = new AsyncDisposableStack();
  const database = await openDatabase({ ...settings.storage, sharing: 'own' });
  opened.defer(() => database.close());
  await requireSchema(database, settings.storage);
  const store = await openTokenStore({ ...settings.storage, database, clock });
  opened.defer(() => store.close());
  const changes = await listenForChanges(database);
  opened.defer(() => changes.close());

  const clients = createClientRegistry({ database, changes, clock });
  const accounts = createAccountRegistry({ database, changes, clock });
  const access = createAccess({ database, changes });
  const connections = createConnections({ database, clock });
  const activity = createActivity({ database, clock });
  const apiKeys = createApiKeys({ database, changes, clock, activity });
  const passwordLinks = createPasswordLinks({ database, clock, accounts, activity });
  const clientProblems = createClientProblems({ database, clock, log });
  opened.defer(() => clientProblems.close());
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
  opened.defer(() => lastUsed.close());
  const isSeeded = settings.demo && (await seedDemo({ database, clock }));

  const stores = { clock, log, database, store, lastUsed, clientProblems };
  const registries = { clients, accounts, access, connections, activity, apiKeys, passwordLinks };
  const build = (next: Settings) => createApplication({ ...stores, ...registries, settings: next });
  let current = { settings, application: build(settings) };
  opened.defer(() => current.application.close());

  const before = (seconds: number): Date => new Date(clock() - seconds * 1000);
  const cleaning = startCleaning({
    log,
    jobs: [
      store.removeExpired,
      connections.removeExpiredGrants,
      clientProblems.removeExpired,
      apiKeys.removeExpired,
      passwordLinks.removeExpired,
      (limit) =>
        activity.removeOlderThan(before(current.settings.activity.retentionSeconds), limit),
    ],
  });
  opened.defer(() => cleaning.stop());

  /**
   * Builds the application anew from the settings as they are now. Requests in flight finish on
   * the one they began on.
   *
   * @throws ConfigurationProblems, and nothing has changed.
   */
  async function reload(): Promise<Reload> {
    const reload = reloaded(current.settings, loadSettings());
    const replaced = current.application;
    current = { settings: reload.settings, application: build(reload.settings) };
    log.level = reload.settings.log.level;
    const { changed, needsRestart } = reload;
    log.info({ changed, needsRestart }, 'settings reloaded');
    await replaced.close();
    return reload;
  }

  const listeners: Server[] = [];
  opened.defer(async () => {
    await Promise.all(listeners.map(drain));
  });
  const { server } = settings;
  listeners.push(
    await listen(
      (request, response) => current.application.handle(request, response),
      ...([server.port, server.host] as const),
    ),
  );
  const operatorsApp = createOperatorsHost({
    reload,
    isReady: async () => {
      await Promise.all([store.ping(), database.ping()]);
    },
  });
  listeners.push(await listen(operatorsApp.callback(), server.operatorsPort, server.operatorsHost));

  const closing = opened.move();
  return {
    settings,
    isSeeded,
    ...{ database, store, clients, accounts, access, connections, activity, apiKeys },
    ...{ passwordLinks, clientProblems, lastUsed },
    /** The address of the operators' listener. */
    operatorsUrl: addressOf(listeners[1]),
    reload,
    /** Answers what is in flight, then closes everything, the last opened first. */
    close: () => closing.disposeAsync(),
  };
}
