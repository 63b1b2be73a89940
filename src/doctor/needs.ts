/** What the checks of the doctor need. Each is opened once; the opening is a check itself. */
import { systemClock } from '../base/clock.ts';
import { loadSettingsWithoutSecrets } from '../config/load.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { NoDeployment, requireEmbeddedDatabase } from '../service/deployment.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { type DatabaseReport, foreignOwners, reportDatabase } from '../storage/database-report.ts';
import { compareMigrations, tableNames } from '../storage/migrate.ts';
import { type ListedNode, listNodes } from '../storage/nodes.ts';
import { connectRedis, createRedis, redisIdentity, redisProblems } from '../storage/redis/redis.ts';
import { reportRedis } from '../storage/redis/report.ts';
import { createRedisStore } from '../storage/redis/store.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { openAddress } from './address.ts';
import { watchChanges } from './change-stream.ts';
import { type Context, NeedFailed, type Open, type Provided } from './check.ts';
import { ok, problem, type Verdict, warning } from './findings.ts';
import { reasonOf, remedyOf } from './store-remedies.ts';
import { createVisitors } from './visitor.ts';

const GIVE_TABLES =
  'give the tables to the role of Gatehouse: docs/operations/incidents.md, "A restore gave the tables to another role"';
/** A slower query is reported, because a request sends several queries. */
const SLOW_QUERY_MS = 50;
/** Multiplies the timeouts of the stores, because the doctor reports a slow store instead of giving up. */
const TIMEOUT_FACTOR = 10;

export const OPEN: Open = { settings, server, database, tokens, nodes, address: openAddress, visitor };

async function settings({ environment, add }: Context): Promise<SettingsWithoutSecrets> {
  try {
    const loaded = loadSettingsWithoutSecrets({ environment });
    add('settings', '', ok(`valid; the issuer is ${loaded.issuer}`));
    return loaded;
  } catch (error) {
    if (!(error instanceof ConfigurationProblems)) throw error;
    add('settings', '', ...settingsProblems(error));
    throw new NeedFailed('the settings have problems');
  }
}

export const settingsProblems = ({ problems }: ConfigurationProblems): Verdict[] =>
  problems.map(({ path, message, remedy }) => problem(`${path} ${message}`, remedy, path));

async function server({ open, add, defer }: Context): Promise<Provided['server']> {
  const { storage } = await open('settings');
  const isEmbedded = storage.databaseUrl === undefined;
  const where = isEmbedded ? storage.dataDirectory : 'DATABASE_URL';
  try {
    requireEmbeddedDatabase(storage);
    const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR });
    defer(() => database.close());
    const report = await reportDatabase(database, systemClock);
    add('database', where, speedVerdict(report, isEmbedded));
    return { database, report, where };
  } catch (error) {
    const itself = error instanceof NoDeployment ? error.remedy : remedyOf(error);
    const remedy = isEmbedded && !(error instanceof NoDeployment) ? EMBEDDED_REMEDY : itself;
    add('database', where, problem(`the database cannot be used: ${reasonOf(error)}`, remedy));
    throw new NeedFailed('the database cannot be used');
  }
}

const EMBEDDED_REMEDY = 'check that this account may write there, and which other process uses that folder';

function speedVerdict({ version, milliseconds }: DatabaseReport, isEmbedded: boolean): Verdict {
  const name = `${isEmbedded ? 'embedded PostgreSQL' : 'PostgreSQL'} ${version}`;
  const took = `${milliseconds.toFixed(1)} ms`;
  if (milliseconds <= SLOW_QUERY_MS) return ok(`${name} answers a simple query in ${took}`);
  const remedy = 'move the database closer to the nodes, or check what keeps the database busy';
  return warning(`${name} takes ${took} for a simple query, and a request needs several`, remedy);
}

async function database({ open, add }: Context): Promise<OpenDatabase> {
  const opened = await open('server');
  const { where } = opened;
  let failing = 'migrations';
  try {
    const foreign = await foreignOwners(opened.database, await tableNames());
    if (foreign.length > 0) {
      const owners = foreign.map(({ owner, tables }) => `${tables} table(s) belong to ${owner}`).join(', ');
      const message = `${owners}, and this role may not read them: usually a superuser restored the dump`;
      add('database_owner', where, problem(message, GIVE_TABLES));
      throw new NeedFailed('the tables belong to another role');
    }
    const { pending, newer } = await compareMigrations(opened.database);
    if (pending.length > 0) {
      const missing = `the schema lacks ${shortened(pending)}: no node of this version has started with this database`;
      const remedy = 'run `gatehouse migrate`, or start a node of this version with storage.auto_migrate: true';
      add('migrations', where, problem(missing, remedy));
      throw new NeedFailed('a migration is pending');
    }
    const later = newer.length === 0 ? '' : `, and also has ${shortened(newer)} of a later version`;
    add('migrations', where, ok(`the schema has the migrations of this version${later}`));
    failing = 'database_writes';
    // Ping as /readyz does: that fails on a read-only server or a full disk.
    await opened.database.ping();
    return opened.database;
  } catch (error) {
    if (error instanceof NeedFailed) throw error;
    add(failing, where, problem(`the database cannot be used: ${reasonOf(error)}`, remedyOf(error)));
    throw new NeedFailed('the database cannot be used');
  }
}

const shortened = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names[0]} to ${names.at(-1)} (${names.length})`;

async function tokens({ open, add, defer }: Context): Promise<Provided['tokens']> {
  const { storage } = await open('settings');
  const where = 'REDIS_URL';
  if (storage.redisUrl === undefined) {
    add('redis', where, ok('not used: the tokens are in the database'));
    await open('database');
    return { identity: 'none', isUsable: true };
  }
  const redis = createRedis(storage.redisUrl, { timeoutFactor: TIMEOUT_FACTOR });
  defer(() => redis.disconnect());
  try {
    await connectRedis(redis);
    const reports = await reportRedis(redis, systemClock);
    const redisFacts = { reports, problems: await redisProblems(redis) };
    const identity = await redisIdentity(redis);
    // A full Redis answers everything except writes and scripts: then its own checks say why.
    const failure = await createRedisStore({ redis, clock: systemClock }).ping().catch(ofRedis);
    const slowest = Math.max(...reports.map(({ milliseconds }) => milliseconds));
    const count = reports.length === 1 ? 'answers' : `${reports.length} masters answer`;
    if (failure)
      add('redis', where, problem(`Redis refuses what requests need: ${reasonOf(failure)}`, remedyOf(failure)));
    else add('redis', where, ok(`${count} in ${slowest.toFixed(1)} ms`));
    return { identity, isUsable: !failure, redis: redisFacts };
  } catch (error) {
    add('redis', where, problem(`Redis cannot be used: ${reasonOf(error)}`, remedyOf(ofRedis(error))));
    throw new NeedFailed('Redis cannot be used');
  }
}

/** Redis refuses an unknown command with a plain error, which does not say that it is about Redis. */
const ofRedis = (error: unknown): StorageUnavailable =>
  error instanceof StorageUnavailable ? error : new StorageUnavailable('redis', error);

async function nodes({ open }: Context): Promise<readonly ListedNode[]> {
  return listNodes(await open('database'));
}

async function visitor(context: Context): Promise<Provided['visitor']> {
  const { open, add, defer, signal, by, findings } = context;
  const { signIn } = await open('settings');
  const visitors = createVisitors(await open('database'), { by, passwords: signIn.passwords });
  const leftOver = await visitors.removeLeftOver();
  if (leftOver > 0) add('left_over', '', ok(`removed leftovers of ${leftOver} earlier run(s)`));
  if (!(await open('tokens')).isUsable) throw new NeedFailed('Redis cannot be used');
  const { openStream } = await open('address');
  signal.throwIfAborted();
  const added = await visitors.add();
  const { accountId } = added;
  defer(() => {
    const problems = findings.filter(({ status }) => status === 'problem').length;
    return visitors.remove(accountId, signal.aborted ? 'broken off' : `${problems} problem(s)`);
  });
  const stopping = new AbortController();
  const stream = watchChanges({
    openStream,
    client: added.resourceServer,
    signal: AbortSignal.any([signal, stopping.signal]),
    watch: context.streamWatch,
  });
  defer(() => {
    stopping.abort();
    return stream;
  });
  const recordedAddress = () => visitors.recordedAddress(added);
  return { ...added, journey: { isClientAccepted: false }, stream, recordedAddress };
}
