/** Connects all parts of the service: stores, caches, application and listeners. */
import type { Server } from 'node:http';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createActivity } from '../accounts/activity/activity.ts';
import { seedDemo } from '../accounts/demo.ts';
import { createEndings } from '../authorizations/endings.ts';
import { readLeakReport } from '../authorizations/leaked-report.ts';
import { createLeakedValues } from '../authorizations/leaked-values.ts';
import type { Clock } from '../base/clock.ts';
import { createPushedChanges } from '../changes/push.ts';
import { createRemovalLimit } from '../changes/removal-limit.ts';
import { neededCredentials } from '../config/operators-listener.ts';
import { createReload } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import type { RequestHandler } from '../host/broken-requests.ts';
import { addressOf, createDeparture, drain, listenOnHost } from '../host/listeners.ts';
import { createMetrics } from '../host/metrics/metrics.ts';
import { createOperatorsHost, OPERATORS_HEADERS } from '../host/operators-host.ts';
import { securityHeaders } from '../host/security-headers.ts';
import { createChangeStreams } from '../provider/introspection-changes.ts';
import { startCleaning } from '../storage/cleaning.ts';
import { startHeartbeat } from '../storage/heartbeat.ts';
import { createApplication, createCurrentApplication } from './application.ts';
import { cleaningJobs } from './cleaning-jobs.ts';
import { createCommonRegistries } from './common-registries.ts';
import { describeNode } from './node-description.ts';
import { createProblemMails } from './problem-mails.ts';
import { createSharedReload } from './shared-reload.ts';
import { openStores } from './stores.ts';

export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * How long change streams stay open after the port is closed, unless their readers disconnect first. Readers need this
 * time to find another node, and to listen to both nodes for a second.
 */
const HANDOVER_MS = 3_000;

const UNREF = { ref: false };
const KEPT_SECRETS = 'leaked secrets could not be refused for good before the reload';

/** Returns a port that no other process uses, because with `reusePort` several processes have the same public port. */
const ownPort = ({ reusePort, port, operatorsPort }: Settings['server']): number => (reusePort ? operatorsPort : port);

/**
 * Opens the stores, creates every part and listens. If the start fails, nothing stays open.
 * @throws EmbeddedPostgresInUse, MigrationsPending, UnsafeRedis or StorageUnavailable, each with its remedy, before
 *   anything listens
 */
export async function startService(given: {
  readonly settings: Settings;
  /** Loads the present settings for a reload. @throws ConfigurationProblems */
  readonly loadSettings: () => Settings;
  readonly clock: Clock;
  /**
   * Milliseconds to add to the time of a store. For tests, which move `clock` but cannot move the stores' clocks.
   * Absent in production, where all clocks show the same time.
   */
  readonly timeShift?: () => number;
  readonly log: Logger;
  /** Multiplies the timeouts of stores and connections. Only for tests: in production, requests would wait too long. */
  readonly timeoutFactor?: number;
  /** How long a reload of every node waits for the other nodes. Only for tests. */
  readonly reloadWaitMs?: number;
}) {
  const { settings, loadSettings, clock, log, timeoutFactor = 1 } = given;
  await using opened = new AsyncDisposableStack();
  const metrics = createMetrics();
  const { outcomes } = metrics;

  const timeShift = given.timeShift ?? (() => 0);
  const stores = await openStores({ ...given, timeShift, timeoutFactor, metrics, opened });
  const { database, changes, store, limits, readiness } = stores;
  const opening = { ...given, ...stores, metrics, timeoutFactor };

  const registries = createCommonRegistries({
    ...opening,
    issuer: settings.issuer,
    brandName: () => current.settings.brand.name,
    onNewProblems: (owners) => mailProblems(owners),
    databaseConnections: settings.storage.databaseConnections,
    maxCached: settings.storage.rememberedPeople,
  });
  opened.defer(() => registries.close());
  const { revocations } = registries;
  const isSeeded = settings.demo && (await seedDemo({ database, clock }));

  await revocations.keepEndsFor(settings.tokens.refreshTokenSeconds);
  const endings = createEndings({ store, revocations, changes });
  const changeStreams = createChangeStreams(changes);
  const { createAttemptLimit } = limits;
  const parts = { ...opening, registries, endings, changeStreams, createAttemptLimit };
  const current = createCurrentApplication({
    settings,
    log,
    build: (next) => createApplication({ ...parts, settings: next }),
  });
  opened.defer(current.close);
  const mailProblems = createProblemMails({
    log,
    requests: registries.clientRequests,
    mail: () => current.application.mail,
    perOwner: createAttemptLimit({
      name: 'client_problem_mails',
      attempts: 1,
      windowSeconds: 86_400,
      // Throw if the store is unavailable, because otherwise each node would send a mail.
      onStoreUnavailable: 'throw',
    }),
  });

  let mailing: Promise<unknown> = Promise.resolve();
  // A stop does not wait for all mails of a long report, because other parts must still write their data.
  opened.defer(() => Promise.race([mailing.then(() => {}), delay(HANDOVER_MS, undefined, UNREF)]));
  const leakedValues = createLeakedValues({
    ...registries,
    ...parts,
    tokenKeys: () => current.settings.secrets.tokenKeys,
    graceSeconds: () => current.settings.leaks.secretGraceSeconds,
    announce(leak) {
      const { kind, clientId, refusedFrom } = leak;
      log.warn({ kind, clientId, refusedFrom }, 'a valid value was found in public and is ended');
      outcomes.valueLeaked(kind);
      // Send one mail after another, because a long report would exceed the maximum of simultaneous mails.
      mailing = mailing.then(() => current.application.mail?.reportLeak(leak));
    },
  });

  let isListening = false;
  const node = `${hostname()}:${ownPort(settings.server)}`;
  const sharedReload = createSharedReload({
    ...parts,
    activity: registries.activity,
    node,
    settings: () => current.settings,
    reload: createReload({ settings, loadSettings, apply, log, outcomes }),
    beat: () => heartbeat.beat(),
    maxWaitMs: given.reloadWaitMs,
  });
  const heartbeat = await startHeartbeat({
    ...parts,
    node,
    afterBeat: sharedReload.checkRequests,
    keysInUse: () => current.settings.secrets,
    describe: () =>
      describeNode({
        settings: current.settings,
        readiness,
        isListening,
        redisIdentity: stores.redisIdentity,
        reload: sharedReload.answer(),
      }),
  });
  opened.defer(() => heartbeat.stop());
  const cleaning = startCleaning({
    log,
    outcomes,
    jobs: cleaningJobs({
      ...parts,
      settings: () => current.settings,
      leakedValues,
    }),
  });
  opened.defer(() => cleaning.stop());

  opened.defer(current.replacedClosed);
  async function apply(next: Settings): Promise<void> {
    // Do this first, because a longer grace period could make a refused secret valid again.
    await leakedValues.refuseDueSecrets().catch((err) => log.warn({ err }, KEPT_SECRETS));
    await revocations.keepEndsFor(next.tokens.refreshTokenSeconds);
    current.replace(next);
    changes.announceEverything();
    await heartbeat.beat();
  }

  const pushedChanges = createPushedChanges({
    changes: registries.engine,
    clock,
    removals: createRemovalLimit({
      clock,
      limit: () => current.settings.import.removalsPerHour,
    }),
    activityOf: (operator) => createActivity({ database, clock, by: { operator } }),
    asksFirst: () => current.settings.organizations.clients === 'ask',
  });
  const departure = createDeparture();
  const operatorsHost = createOperatorsHost({
    log,
    reload: sharedReload,
    readiness,
    metrics: metrics.text,
    operatorsHost: settings.server.operatorsHost,
    reloadCredentials: () => neededCredentials(settings.server.operatorsHost, current.settings.secrets),
    pushChanges: pushedChanges.push,
    async endLeaked(report, scanner) {
      const { found, malformed } = readLeakReport(report);
      await leakedValues.end(found, 'service', { reported_by: scanner });
      return { received: found.length, malformed };
    },
    readAudit: registries.auditTrail.page,
    senders: {
      senders: () => current.settings.senders,
      wrongSecrets: () => current.application.wrongSecrets,
    },
  });
  const { everyone, operators } = await listen({
    settings,
    log,
    timeoutFactor,
    departure,
    opened,
    handle: (request, response) => current.application.handle(request, response),
    handleOperators: operatorsHost.handle,
    endStreams: changeStreams.end,
    async onOpen() {
      isListening = true;
      await heartbeat.beat();
    },
  });
  const started = sharedReload.start().catch(() => {});
  opened.defer(() => started.then(sharedReload.stop));

  const shutdownDelayMs = (): number => current.settings.server.shutdownDelaySeconds * 1000;
  const closing = opened.move();
  return {
    ...registries,
    settings,
    isSeeded,
    database,
    changes,
    store,
    /** Returns every route of the public listener, with the steps before its response. */
    routes: () => current.application.routes,
    operatorsUrl: addressOf(operators[0]),
    operatorsRoutes: operatorsHost.routes,
    /** Reloads only this node. */
    reload: sharedReload.here,
    metrics,
    readiness,
    shutdownDelayMs,
    /** Runs the cleaning jobs now. They also run every minute. */
    clean: cleaning.round,
    /** Resolves when the cleaning jobs have run once. */
    firstCleaning: cleaning.first,
    /** Applies the given settings, and does not load the settings file. */
    apply,
    /** Makes the node not ready, accepts requests during the shutdown delay, then closes the port. */
    async leave() {
      readiness.startDraining();
      void heartbeat.beat();
      const leaving = {
        delayMs: shutdownDelayMs(),
        // From now on, readers can open their next stream only at another node, if there is one.
        onClosed: () => changeStreams.leave(database.embedded ? 0 : HANDOVER_MS),
      };
      await departure.leave(everyone, leaving);
    },
    /** Answers requests in progress, then closes everything in reverse order of opening. */
    close: () => closing.disposeAsync(),
  };
}

/**
 * Opens both listeners. At shutdown, streams end first, then the listeners close, and then the parts that they use. The
 * operators' listener opens last, and nothing may be awaited afterwards. Once `/readyz` answers, a SIGTERM must not
 * lose a request, but the process can handle SIGTERM only when its start has finished.
 * @param parts.onOpen called when the public listener is open, before the operators' listener
 */
async function listen(parts: {
  readonly settings: Settings;
  readonly log: Logger;
  readonly timeoutFactor: number;
  readonly departure: ReturnType<typeof createDeparture>;
  readonly opened: AsyncDisposableStack;
  readonly handle: RequestHandler;
  readonly handleOperators: RequestHandler;
  readonly endStreams: () => void;
  readonly onOpen: () => Promise<void>;
}) {
  const { log, timeoutFactor, departure, opened, handle, handleOperators, endStreams } = parts;
  const { server, issuer } = parts.settings;
  const listeners: Server[] = [];
  opened.defer(async () => {
    await Promise.all(listeners.map(drain));
  });
  // End event streams first, because `drain` would wait for them until its timeout.
  opened.defer(endStreams);
  const everyone = await listenOnHost(handle, server.port, server.host, {
    ServerResponse: departure.ServerResponse,
    maxConnections: server.maxConnections,
    reusePort: server.reusePort,
    headers: securityHeaders(issuer).data,
    timeoutFactor,
    log,
  });
  listeners.push(...everyone);
  await parts.onOpen();
  const { operatorsPort, operatorsHost } = server;
  const operators = await listenOnHost(handleOperators, operatorsPort, operatorsHost, {
    headers: OPERATORS_HEADERS,
    log,
  });
  listeners.push(...operators);
  return { everyone, operators };
}
