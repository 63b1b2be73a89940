/** Opens each store and connection for the doctor's checks once, and reports whether it can be opened. */
import { systemClock } from '../base/clock.ts';
import type { OperatedBy } from '../base/operated-by.ts';
import type { Variables } from '../config/environment.ts';
import { loadSettingsWithoutSecrets } from '../config/load.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { requireEmbeddedDatabase } from '../service/deployment.ts';
import { troubleOf } from '../service/startup-errors.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { foreignOwners, serverVersion } from '../storage/database-report.ts';
import { compareMigrations, tableNames } from '../storage/migrate.ts';
import { type ListedNode, listNodes } from '../storage/nodes.ts';
import { connectRedis, createRedis, redisIdentity, redisProblems } from '../storage/redis/redis.ts';
import { redisReport } from '../storage/redis/report.ts';
import { createRedisStore } from '../storage/redis/store.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { type StreamWatch, watchChanges } from './change-stream.ts';
import { described, explainConnectionError, unreachable } from './connection-errors.ts';
import { type Finding, notChecked, ok, problem, trouble, type Verdict, warning } from './findings.ts';
import { createRequests } from './requests.ts';
import { createVisitors } from './visitor.ts';

export interface ExaminationOptions {
  /** The address to connect to; by default, the host of the issuer. */
  readonly address?: string;
  /** The recipient of a test mail. */
  readonly mail?: string;
  readonly environment: Variables;
  readonly signal: AbortSignal;
  readonly by: OperatedBy;
  readonly streamWatch?: StreamWatch | undefined;
}

export interface Context extends ExaminationOptions {
  readonly findings: readonly Finding[];
  add(check: string, where: string, ...verdicts: readonly Verdict[]): void;
  /** Calls `work` after the last check. Deferred functions are called in reverse order. */
  defer(work: () => unknown): void;
}

/** Thrown if a store or another resource for a check is unavailable. The message says why the check did not run. */
export class NeedFailed extends Error {}

/** Multiplies the timeouts of the stores, so that the doctor reports a slow store instead of a failed one. */
const TIMEOUT_FACTOR = 10;
const NO_DATABASE = 'the database cannot be used';

/** Functions that open stores and connections for checks. Later calls return the same value. @throws NeedFailed */
export type Needs = ReturnType<typeof createNeeds>;

export function createNeeds(context: Context) {
  const settings = once(async () => openSettings(context));
  const server = once(async () => openServer(context, await settings()));
  const database = once(async () => openSchema(context, await server(), await settings()));
  const tokens = once(async () => openTokens(context, await settings()));
  const service = once(async () => openService(context, await settings()));
  const nodes = once(async () => listNodes(await database()));
  const running = once(async () => {
    const found = runningOf(await nodes());
    if (found.length === 0) throw new NeedFailed('no node is running');
    return found;
  });
  const visitors = once(async () => openVisitors(context, await settings(), await database()));
  const visitor = once(async () => {
    const created = await visitors();
    if (!(await tokens()).isUsable) throw new NeedFailed('Redis cannot be used');
    return openVisitor(context, created, await service());
  });
  return { settings, server, database, tokens, service, nodes, running, visitor };
}

export const runningOf = (nodes: readonly ListedNode[]) => nodes.filter(({ state }) => state !== 'silent');

function once<Value>(open: () => Promise<Value>): () => Promise<Value> {
  let opening: Promise<Value> | undefined;
  return () => {
    opening ??= open();
    return opening;
  };
}

function openSettings({ environment, add }: Context): SettingsWithoutSecrets {
  try {
    const settings = loadSettingsWithoutSecrets({ environment });
    add('settings', '', ok(`valid; the issuer is ${settings.issuer}`));
    return settings;
  } catch (error) {
    add('settings', '', ...settingsProblems(error));
    throw new NeedFailed('the settings have problems');
  }
}

/** @throws any error that is not ConfigurationProblems */
export function settingsProblems(error: unknown): Verdict[] {
  if (!(error instanceof ConfigurationProblems)) throw error;
  return error.problems.map(({ path, message, remedy }) => trouble('problem', path)`${path} ${message} → ${remedy}`);
}

/** Returns a problem for an unusable store, with the same remedy as a service that cannot start with the store. */
export function storeProblem(error: unknown, start = ''): Verdict {
  const failure = error as Error & { readonly reason?: string; readonly remedy?: string };
  const { message, reason = message, remedy = troubleOf(error)?.remedy } = failure;
  return problem`${start}${reason} → ${remedy ?? 'check the store: that it runs, has space, and is not open elsewhere'}`;
}

/** Connects to the database, which may have no schema yet. */
async function openServer({ add, defer }: Context, { storage }: SettingsWithoutSecrets) {
  const isEmbedded = storage.databaseUrl === undefined;
  const where = isEmbedded ? storage.dataDirectory : 'DATABASE_URL';
  function fail(check: string, error: unknown): never {
    if (error instanceof NeedFailed) throw error;
    add(check, where, storeProblem(error, `${NO_DATABASE}: `));
    throw new NeedFailed(NO_DATABASE);
  }
  try {
    requireEmbeddedDatabase(storage);
    const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR });
    defer(() => database.close());
    const start = performance.now();
    const name = `${isEmbedded ? 'embedded PostgreSQL' : 'PostgreSQL'} ${await serverVersion(database)}`;
    add('database', where, ok(`${name} answers`, performance.now() - start));
    return { database, where, fail };
  } catch (error) {
    return fail('database', error);
  }
}

type Server = Awaited<ReturnType<typeof openServer>>;

/** Returns the database if it has the schema of this version, and the doctor can write to it. */
async function openSchema(
  { add }: Context,
  { database, where, fail }: Server,
  { storage }: SettingsWithoutSecrets,
): Promise<OpenDatabase> {
  let failing = 'migrations';
  try {
    const foreign = await foreignOwners(database, await tableNames());
    const unreadable = foreign.filter(({ isReadable }) => !isReadable);
    const named = unreadable.length > 0 ? unreadable : foreign;
    const owners = named.map(({ owner, tables }) => `${tables} table(s) belong to ${owner}`).join(', ');
    if (unreadable.length > 0) {
      const verdict = problem`${owners}, and this role may not read them: usually a superuser restored the dump →
        ${GIVE_TABLES}`;
      add('database_owner', where, verdict);
      add('migrations', where, notChecked(FOREIGN));
      throw new NeedFailed(FOREIGN);
    }
    if (foreign.length > 0 && storage.autoMigrate) {
      const verdict = warning`${owners}, so this role cannot migrate them: a node of a later version will not start →
        ${GIVE_TABLES}; or migrate as that role, with storage.auto_migrate: false`;
      add('database_owner', where, verdict);
    }
    const { pending, newer } = await compareMigrations(database);
    if (pending.length > 0) {
      const verdict = problem`the schema lacks ${pending.join(', ')}: no node of this version has started with this
        database → run \`gatehouse migrate\`, or start a node of this version with storage.auto_migrate: true`;
      add('migrations', where, verdict);
      throw new NeedFailed('a migration is pending');
    }
    const later = newer.length === 0 ? '' : `, and also has ${newer.join(', ')} of a later version`;
    add('migrations', where, ok(`the schema has the migrations of this version${later}`));
    failing = 'database_writes';
    // Ping the database as /readyz does, to detect a read-only server or a full disk.
    await database.ping();
    return database;
  } catch (error) {
    return fail(failing, error);
  }
}

const FOREIGN = 'the tables belong to another role';
const GIVE_TABLES =
  'give the tables to the role of Gatehouse: docs/operations/incidents.md, "A restore gave the tables to another role"';

/**
 * Returns `identity`, the id that a node has stored in Redis (`none` without Redis, undefined if no node has stored
 * one), and `isUsable`, which is false if Redis answers but refuses what requests need.
 */
async function openTokens({ add, defer }: Context, { storage: { redisUrl } }: SettingsWithoutSecrets) {
  const where = 'REDIS_URL';
  if (redisUrl === undefined) {
    add('redis', where, ok('not used: the tokens are in the database'));
    return { identity: 'none', isUsable: true };
  }
  const redis = createRedis(redisUrl, { timeoutFactor: TIMEOUT_FACTOR });
  defer(() => redis.disconnect());
  try {
    await connectRedis(redis);
    const start = performance.now();
    const found = { problems: await redisProblems(redis), ...(await redisReport(redis)) };
    const identity = await redisIdentity(redis);
    // A full Redis refuses only writes and scripts; the check `redis_memory` then reports the reason.
    const failure = await createRedisStore({ redis, clock: systemClock }).ping().catch(ofRedis);
    const answers = ok('answers what requests need', performance.now() - start);
    add('redis', where, failure ? storeProblem(failure, 'Redis refuses what requests need: ') : answers);
    return { identity, isUsable: !failure, redis: found };
  } catch (error) {
    add('redis', where, storeProblem(ofRedis(error), 'Redis cannot be used: '));
    throw new NeedFailed('Redis cannot be used');
  }
}

/** Wraps the plain error with which Redis refuses an unknown command, because that error does not name the store. */
const ofRedis = (error: unknown): StorageUnavailable =>
  error instanceof StorageUnavailable ? error : new StorageUnavailable('redis', error);

/** Requests the metadata. Only the service itself may answer, and the metadata must name this issuer. */
async function openService({ add, address, signal }: Context, { issuer }: SettingsWithoutSecrets) {
  const where = address === undefined ? issuer : `${address} (with the host name of ${issuer})`;
  const requests = createRequests({ issuer, address, signal });
  const asked = performance.now();
  function fail(verdict: Verdict): never {
    signal.throwIfAborted();
    add('public_address', where, verdict);
    throw new NeedFailed('the service does not answer');
  }
  const first = await requests.send({ path: ENDPOINT.metadata }).catch((error) => fail(unreachable(error)));
  const ms = performance.now() - asked;
  const found = explainConnectionError(first);
  if (found) fail(found);
  if (first.status !== 200 || first.body.issuer !== issuer) {
    fail(problem`the metadata at this address has the issuer ${first.body.issuer}: ${described(first)} →
      give every node and the doctor the same issuer (GATEHOUSE_ISSUER)`);
  }
  add('public_address', where, ok(`${where} (${first.to}) answers with its metadata`, ms));
  return { ...requests, first };
}

type Service = Awaited<ReturnType<typeof openService>>;

async function openVisitors({ add, by }: Context, { signIn }: SettingsWithoutSecrets, database: OpenDatabase) {
  const visitors = createVisitors(database, { by, passwords: signIn.passwords });
  const leftOver = await visitors.removeLeftOver();
  if (leftOver > 0) add('left_over', '', ok(`removed leftovers of ${leftOver} earlier run(s)`));
  return visitors;
}

/** Adds a temporary account with two clients, and begins to watch the change stream. */
async function openVisitor(
  { defer, signal, findings, streamWatch }: Context,
  visitors: ReturnType<typeof createVisitors>,
  { openStream }: Service,
) {
  signal.throwIfAborted();
  const added = await visitors.add();
  defer(() => {
    const problems = findings.filter(({ status }) => status === 'problem').length;
    return visitors.remove(added.accountId, signal.aborted ? 'interrupted' : `${problems} problem(s)`);
  });
  const stopping = new AbortController();
  const end = AbortSignal.any([signal, stopping.signal]);
  const stream = watchChanges(openStream, added.resourceServer, end, streamWatch);
  defer(() => {
    stopping.abort();
    return stream;
  });
  const recordedAddress = () => visitors.recordedAddress(added.accountId);
  // The flow check sets `journey.isClientAccepted` when the client has authenticated. Later checks read this member.
  return { ...added, journey: { isClientAccepted: false }, stream, recordedAddress };
}
