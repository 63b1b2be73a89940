/** The whole service, started in this process on free loopback ports, with empty stores. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { logMixin } from '../../src/base/current-request.ts';
import { type Changes, createChanges } from '../../src/changes/engine.ts';
import { createOrganizations, type Organizations } from '../../src/changes/organizations.ts';
import { settingsFile } from '../../src/config/schema/schema.ts';
import { type Settings, settingsFrom } from '../../src/config/settings.ts';
import { type Service, startService } from '../../src/service/service.ts';
import { sendToAllNodes } from '../../src/storage/change-feed.ts';
import type { Database } from '../../src/storage/queries.ts';
import { createMemberships, type Memberships } from './accounts.ts';
import { realNow } from './clock.ts';
import { freshDataDirectory } from './embedded-postgres.ts';
import { eventually } from './eventually.ts';
import { createOpened } from './opened.ts';
import { freshMigratedDatabaseUrl } from './postgres-server.ts';
import { freePort } from './programs.ts';
import { freshRedisUrl } from './redis-server.ts';
import { describeOn, postgresServer, redisServer } from './requirements.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

/** The stores of a service; without Redis the tokens are in the database. */
export type Deployment = 'embedded' | 'postgres' | 'postgres+redis';

/** The cheapest deployment whose programs are installed, for tests that run equally on each. */
const usualDeployment: Deployment =
  postgresServer.program === undefined || redisServer.program === undefined ? 'embedded' : 'postgres+redis';

export interface TestService extends Service {
  readonly issuer: string;
  readonly clock: Clock;
  /** Write access to organizations, which only operators have; the service itself only reads them. */
  readonly organizations: Organizations;
  readonly engine: Changes;
  readonly memberships: Memberships;
  /** Each log entry as one line of JSON. */
  readonly logLines: readonly string[];
  /** Applies changed settings, as a reload does, until this work has ended. */
  withSettings(changes: Overrides, work: () => Promise<unknown>): Promise<void>;
}

/** Settings that replace the defaults of tests, section by section. */
export type Overrides = {
  readonly [Section in keyof Settings]?: Settings[Section] extends string | boolean | readonly unknown[]
    ? Settings[Section]
    : Partial<Settings[Section]>;
};

export interface StartOptions {
  /** Default: `usualDeployment`, or the stores that `settings` name. */
  readonly deployment?: Deployment;
  readonly settings?: Overrides;
  readonly clock?: Clock;
  /** Seconds by which the clock of this node alone is ahead of those of its stores. */
  readonly ahead?: number;
  /**
   * A service whose stores and secrets the new one shares, as another node of its deployment.
   * Impossible on the embedded database, which has only one node.
   */
  readonly sharing?: TestService;
  /** Creates the database, if it is on the server. Default: one with the schema and empty tables. */
  readonly createDatabase?: () => Promise<string>;
  /** Factor for the production timeouts. Tests of the timeouts themselves set it to 1. */
  readonly timeoutFactor?: number;
  /** How long `reload` waits for the answers of nodes. Default: as in production. */
  readonly reloadWaitMs?: number;
  /** Changes that a reload finds, on top of the settings of the start. Default: none. */
  readonly reloaded?: () => Overrides;
}

/**
 * Starts the service, which the caller closes. Its database has the schema and empty tables; `seed`
 * fills them. Nodes that share stores (`sharing`) each have their own issuer (a port).
 */
export async function startTestService(options: StartOptions = {}): Promise<TestService> {
  const { ahead = 0, sharing, timeoutFactor = TIMEOUT_FACTOR } = options;
  const { reloadWaitMs } = options;
  const clock = options.clock ?? (() => systemClock() + ahead * 1_000);
  const settings = await settingsOf(options);
  const logLines: string[] = [];
  const log = pino({ level: settings.log.level, mixin: logMixin }, { write: (line) => void logLines.push(line) });
  const loadSettings = () => changedBy(settings, options.reloaded?.() ?? {});
  // A test clock also moves the time of the stores, but `ahead` only that of this node. The
  // embedded database reads Date.now, which the test clock has already moved.
  const storesNow = settings.storage.databaseUrl === undefined ? systemClock : realNow;
  const timeShift = options.clock ? () => clock() - storesNow() : () => 0;
  const parts = { settings, loadSettings, clock, timeShift, log, timeoutFactor };
  const service = await startService({ ...parts, ...(reloadWaitMs && { reloadWaitMs }) });
  const database = createHeardDatabase(service);
  const engine = createChanges({ database, timeoutFactor });
  return {
    ...service,
    issuer: settings.issuer,
    clock,
    organizations: sharing?.organizations ?? createOrganizations({ database, engine }),
    engine,
    memberships: sharing?.memberships ?? createMemberships({ database }),
    logLines,
    async withSettings(changes, work) {
      await service.apply(changedBy(settings, changes));
      await work().finally(() => service.apply(settings));
    },
  };
}

/** A database whose transactions resolve when this node has also received their notifications. */
function createHeardDatabase({ database, changes }: Service): Database {
  const heard = new Set<string>();
  changes.onMessage((text) => heard.add(text));
  return {
    ...database,
    async transaction(work) {
      const result = await database.transaction(work);
      const marker = randomUUID();
      await sendToAllNodes(database, marker);
      // PostgreSQL delivers in the order of the commits. A feed that is not live delivers nothing.
      await eventually(() => {
        if (changes.isLive && !heard.has(marker)) throw new Error('no notification has arrived');
      });
      return result;
    },
  };
}

/** Starts a new service, which is closed after the suite. */
export type Start = (options?: Omit<StartOptions, 'deployment'>) => Promise<TestService>;

const suiteOn = (body: (start: Start) => void, deployment: Deployment) => () => body(startsOn(deployment));

/**
 * Defines the suite once per place of the tokens: PostgreSQL, and Redis. Use it for rules that the
 * stores could break; for any other suite one deployment is enough (`startsOn()`).
 */
export function forEachDeployment(title: string, body: (start: Start) => void): void {
  describeOn([postgresServer], `${title}, PostgreSQL`, suiteOn(body, 'postgres'));
  onPostgresAndRedis(title, body);
}

/** Defines the suite for the deployment that most operators run: rules of pages and commands hold on every store. */
export function onPostgresAndRedis(title: string, body: (start: Start) => void): void {
  const suite = suiteOn(body, 'postgres+redis');
  describeOn([postgresServer, redisServer], `${title}, PostgreSQL and Redis`, suite);
}

/** Returns how the calling suite starts services, in hooks and tests; they are closed after it. */
export function startsOn(deployment?: Deployment): Start {
  const started = createOpened();
  after('close the services', started.closeAll);
  return (options = {}) =>
    started.add(startTestService({ ...options, ...(deployment && { deployment }) }), (service) => service.close());
}

async function settingsOf(options: StartOptions): Promise<Settings> {
  const { deployment, settings: changes = {}, sharing, createDatabase } = options;
  const port = changes.server?.port ?? (await freePort());
  const issuer = changes.issuer ?? `http://localhost:${port}`;
  const base = sharing?.settings ?? DEFAULTS;
  const { dataDirectory, databaseUrl } = changes.storage ?? {};
  const isPlaced = sharing ?? (deployment === undefined && (dataDirectory || databaseUrl));
  const place = isPlaced ? {} : await placeOf(deployment ?? usualDeployment, createDatabase);
  const { mail: _, ...rest } = { mail: undefined, ...base };
  return changedBy(
    {
      ...rest,
      issuer,
      isLoopback: issuer.startsWith('http://'),
      server: { ...base.server, port, operatorsPort: 0 },
      storage: { ...base.storage, ...place },
      demo: false,
    },
    changes,
  );
}

/** Returns `settings` with the members of `changes` in place of its own. */
function changedBy(settings: Settings, changes: Overrides): Settings {
  const sections = Object.entries<unknown>({ ...changes }).map(([name, change]) => {
    const section: unknown = settings[name as keyof Settings];
    const isSection = typeof change === 'object' && typeof section === 'object' && !Array.isArray(change);
    return [name, isSection ? { ...section, ...change } : change];
  });
  return { ...settings, ...Object.fromEntries(sections) };
}

async function placeOf(
  deployment: Deployment,
  createDatabase = freshMigratedDatabaseUrl,
): Promise<Partial<Settings['storage']>> {
  if (deployment === 'embedded') return { dataDirectory: await freshDataDirectory() };
  const databaseUrl = await createDatabase();
  if (deployment === 'postgres') return { databaseUrl };
  return { databaseUrl, redisUrl: await freshRedisUrl() };
}

/** The defaults of the settings file, with other addresses, secrets and values for tests. */
const DEFAULTS: Settings = changedBy(
  {
    ...settingsFrom(settingsFile.parse({}), [], ''),
    secrets: {
      cookieKeys: ['cookie-key-of-the-tests-0123456789abcdef'],
      tokenKeys: ['token-key-of-the-tests-0123456789abcdefg'],
    },
    senders: { changes: [], leaks: [], audit: [] },
  },
  {
    server: { host: '127.0.0.1', operatorsHost: '127.0.0.1', operatorsPort: 0 },
    storage: { dataDirectory: '' },
    signIn: { requireGraceSeconds: 0 },
    log: { level: 'debug' },
  },
);
