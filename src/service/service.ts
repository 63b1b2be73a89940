/** The only wiring: the stores, what remembers for them, the application, and who may reach it. */
import type { Server } from 'node:http';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { createActivity } from '../accounts/activity/activity.ts';
import { seedDemo } from '../accounts/demo.ts';
import { keyEmails } from '../accounts/email.ts';
import { createEndings, reportRevived } from '../authorizations/endings.ts';
import { createEndsRepeater } from '../authorizations/repeated-ends.ts';
import { createRevocations } from '../authorizations/revocations.ts';
import type { Clock } from '../base/clock.ts';
import { neededCredentials } from '../config/operators-listener.ts';
import { createReload } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import { createForwardedWatch } from '../host/forwarded-watch.ts';
import { addressOf, createDeparture, drain, listenOnHost } from '../host/listeners.ts';
import { createMetrics } from '../host/metrics/metrics.ts';
import { createOperatorsHost } from '../host/operators-host.ts';
import { createClockWatch, createReadiness } from '../host/readiness.ts';
import { lastImport } from '../import/report.ts';
import { createChangeStreams } from '../provider/introspection-changes.ts';
import { listenForChanges } from '../storage/change-feed.ts';
import { startCleaning } from '../storage/cleaning.ts';
import { openDatabase } from '../storage/database.ts';
import { startKeySightings } from '../storage/key-sightings.ts';
import { measuredDatabase, measuredStore } from '../storage/measured-store.ts';
import { requireSchema } from '../storage/migrate.ts';
import { openTokenStore } from '../storage/open-token-store.ts';
import { createApplication } from './application.ts';
import { describeNode } from './node-description.ts';
import { createRegistries } from './registries.ts';

export interface ServiceParts {
  readonly settings: Settings;
  /** The settings as they are now, for a reload. @throws ConfigurationProblems */
  readonly loadSettings: () => Settings;
  readonly clock: Clock;
  /**
   * Milliseconds to add to what a store's clock says. For a test, whose `clock` moves while those
   * of the stores do not; in production there is none, and all of them tell the same time.
   */
  readonly timeShift?: () => number;
  readonly log: Logger;
  /** Multiplies how long a store and a connection may take. No setting does that: requests wait. */
  readonly patience?: number;
}

export type Service = Awaited<ReturnType<typeof startService>>;

/**
 * Milliseconds after the port is closed for which streams of changes stay open, unless their readers
 * leave before: as long as they take to find another node, and to listen to both for a second.
 */
const HANDOVER = 3_000;

/** Which no other process of this machine has: those that share the public one differ in the other. */
const ownPort = ({ reusePort, port, operatorsPort }: Settings['server']): number =>
  reusePort ? operatorsPort : port;

/**
 * Opens the stores, builds every part and listens. What fails half-way leaves nothing open.
 *
 * @throws EmbeddedPostgresInUse, MigrationsPending, UnsafeRedis or StorageUnavailable, each with
 *   its remedy, before anything listens.
 */
export async function startService(given: ServiceParts) {
  const { settings, loadSettings, clock, log } = given;
  const { timeShift = () => 0, patience = 1 } = given;
  const storage = { ...settings.storage, patience };
  await using opened = new AsyncDisposableStack();
  const metrics = createMetrics();
  const { outcomes } = metrics;
  const database = measuredDatabase(
    await openDatabase({ ...storage, sharing: 'own' }),
    metrics.observeStore('database'),
  );
  opened.defer(() => database.close());
  await requireSchema(database, storage);
  for (const conflict of await keyEmails(database)) {
    log.warn(conflict, 'two accounts have the same email address: one of them cannot sign in');
  }
  const changes = await listenForChanges(database, patience);
  opened.defer(() => changes.close());
  const recordedEnds = createRevocations({
    database,
    clock,
    activity: createActivity({ database, clock }),
    log,
  });
  const repeater = createEndsRepeater({ revocations: recordedEnds, clock });
  const guarding = { repeater, changes, log, onRepeat: outcomes.endsRepeated };
  const tokens = await openTokenStore({ ...storage, database, clock, timeShift, guarding });
  const { limits, time } = tokens;
  const store = measuredStore(tokens.store, metrics.observeStore('tokens'));
  opened.defer(() => store.close());
  const readiness = createReadiness({
    clock,
    timeShift,
    onAnswer: createClockWatch(log),
    probes: {
      database: () => database.ping(),
      tokens: time && (async () => (await Promise.all([time(), store.ping()]))[0]),
    },
  });
  metrics.watch({
    stores: readiness.stores,
    connections: () => database.connections(),
    isFeedLive: () => changes.isLive,
    lastImport: () => lastImport(database),
  });

  // A clock that differs is said at the start, and not first when somebody asks.
  await readiness.ask();

  const { rememberedPeople: mostRemembered } = storage;
  const registries = createRegistries({
    database,
    changes,
    clock,
    log,
    issuer: settings.issuer,
    mostRemembered,
  });
  opened.defer(() => registries.close());
  const { activity, revocations, requestStreams } = registries;
  const isSeeded = settings.demo && (await seedDemo({ database, clock }));

  const { createAttemptLimit } = limits;
  const endings = createEndings({ store, revocations, clock, changes });
  const changeStreams = createChangeStreams(changes);
  const parts = {
    clock,
    log,
    metrics,
    database,
    store,
    endings,
    changeStreams,
    createAttemptLimit,
    ...registries,
  };
  const build = (next: Settings) => createApplication({ ...parts, settings: next });
  let current = { settings, application: build(settings) };
  opened.defer(() => current.application.close());
  const forwarded = createForwardedWatch(() => void keySightings.beat());
  let isListening = false;
  const keySightings = await startKeySightings({
    database,
    clock,
    log,
    node: `${hostname()}:${ownPort(settings.server)}`,
    keysInUse: () => current.settings.secrets,
    describe: () =>
      describeNode({
        settings: current.settings,
        readiness,
        isListening,
        redisIdentity: tokens.identity,
        isForwarded: forwarded.isSeen,
      }),
  });
  opened.defer(() => keySightings.stop());

  const before = (seconds: number): Date => new Date(clock() - seconds * 1000);
  const unkept = (): Date => before(current.settings.activity.retentionSeconds);
  const signedOut = (): Date => before(current.settings.sessions.absoluteSeconds);
  async function carryOut(): Promise<number> {
    const ended = await endings.carryOut();
    if (ended > 0)
      log.warn({ ended }, 'ends that a node began and did not finish were carried out');
    return ended;
  }
  const cleaning = startCleaning({
    log,
    outcomes,
    jobs: {
      tokens: store.removeExpired,
      attempts: limits.removeExpired,
      client_problems: registries.clientProblems.removeExpired,
      api_keys: registries.apiKeys.removeExpired,
      password_links: registries.passwordLinks.removeExpired,
      browser_sessions: (limit) => registries.sessionList.removeOlderThan(signedOut(), limit),
      upstream_sessions: registries.upstreamSessions.removeExpired,
      passkey_challenges: registries.passkeys.removeExpired,
      upstream_sign_outs: (limit) =>
        registries.upstreamSessions.finishEnded(store.removeSessionByUid, limit),
      activity: (limit) => activity.removeOlderThan(unkept(), limit),
      revocations: (limit) => revocations.removeOlderThan(unkept(), limit),
      machine_token_ends: revocations.removeExpired,
      ends: carryOut,
    },
  });
  opened.defer(() => cleaning.stop());

  const replacedClosing = new Set<Promise<void>>();
  opened.defer(async () => {
    await Promise.all(replacedClosing);
  });

  /** Builds the application anew. Requests in flight finish on the one they began on. */
  async function apply(next: Settings): Promise<void> {
    const replaced = current.application;
    current = { settings: next, application: build(next) };
    changes.forgetEverything();
    registries.requestStreams.reopen();
    log.level = next.log.level;
    // What it still does may take its time, such as a mail that is on its way.
    const closing = replaced
      .close()
      .catch((err: unknown) => log.error({ err }, 'what was replaced did not end cleanly'))
      .finally(() => replacedClosing.delete(closing));
    replacedClosing.add(closing);
    await keySightings.note();
  }

  // Beside the start, which it neither delays nor hinders.
  const looked = reportRevived(endings, log);
  opened.defer(() => looked);

  const reload = createReload({ settings, loadSettings, apply, log, outcomes });

  const listeners: Server[] = [];
  opened.defer(async () => {
    await Promise.all(listeners.map(drain));
  });
  // Each would be in flight until it is cut.
  opened.defer(() => void [changeStreams, requestStreams].map((streams) => streams.end()));
  const { server } = settings;
  const departure = createDeparture();
  const everyone = await listenOnHost(
    (request, response) => {
      forwarded.see(request);
      return current.application.handle(request, response);
    },
    server.port,
    server.host,
    {
      ServerResponse: departure.ServerResponse,
      maxConnections: server.maxConnections,
      reusePort: server.reusePort,
      patience,
      log,
    },
  );
  listeners.push(...everyone);
  const operatorsApp = createOperatorsHost({
    log,
    reload,
    readiness,
    metrics: metrics.text,
    operatorsHost: server.operatorsHost,
    reloadCredentials: () => neededCredentials(server.operatorsHost, current.settings.secrets),
  });
  const { operatorsPort, operatorsHost } = server;
  const operators = await listenOnHost(operatorsApp.callback(), operatorsPort, operatorsHost, {
    log,
  });
  listeners.push(...operators);
  isListening = true;
  await keySightings.beat();

  const shutdownDelayMs = (): number => current.settings.server.shutdownDelaySeconds * 1000;
  const closing = opened.move();
  return {
    ...registries,
    settings,
    isSeeded,
    database,
    store,
    /** Every path of the public listener, with what stands before its answer. */
    routes: () => current.application.routes,
    /** The address of the operators' listener. */
    operatorsUrl: addressOf(operators[0]),
    reload,
    metrics,
    readiness,
    shutdownDelayMs,
    /** Removes now what has expired, as happens every minute. */
    clean: cleaning.round,
    /** Puts these settings in force instead of those that a reload would find. */
    apply,
    /** Says that it is about to end, takes requests for the shutdown delay, then lets nobody in. */
    async leave() {
      readiness.startDraining();
      void keySightings.beat();
      const leaving = {
        delayMs: shutdownDelayMs(),
        // From here on the next stream can only be opened at another node, where there is one.
        onClosed: () => changeStreams.leave(database.embedded ? 0 : HANDOVER),
        // A browser gives a stream up for good if opening it again is refused, so none is refused.
        onUnreachable: () => requestStreams.reopen(),
      };
      await Promise.all(everyone.map((server) => departure.leave(server, leaving)));
    },
    /** Answers what is in flight, then closes everything, the last opened first. */
    close: () => closing.disposeAsync(),
  };
}
