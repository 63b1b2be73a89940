/** The doctor's look at where the tokens are: does Redis keep them, is it on time, and do ends hold? */
import type { Cluster, Redis } from 'ioredis';
import { createActivity } from '../accounts/activity/activity.ts';
import { createEndings } from '../authorizations/endings.ts';
import { createRevocations } from '../authorizations/revocations.ts';
import { systemClock } from '../base/clock.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { createPostgresStore } from '../storage/postgres-store.ts';
import type { Database } from '../storage/queries.ts';
import { connectRedis, createRedis, redisIdentity, redisProblems } from '../storage/redis/redis.ts';
import { type RedisReport, reportRedis } from '../storage/redis/report.ts';
import { createRedisStore } from '../storage/redis/store.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { checkClock, reasonOf, remedyOf } from './database.ts';
import type { Findings } from './findings.ts';

const WHERE = 'REDIS_URL';
const OLDEST_VERSION = [6, 2] as const;
const CHECKS = [
  'redis_version',
  'redis_eviction',
  'redis_persistence',
  'redis_memory',
  'redis_replication',
  'redis_clock',
];

export interface CheckedTokenStore {
  readonly store: TokenStore;
  /** The id that is kept in this Redis; `none` without Redis, undefined if no node has made one. */
  readonly identity: string | undefined;
}

/** @returns where the tokens are, or undefined where that cannot be used. The caller closes it. */
export async function checkTokenStore(
  findings: Findings,
  { storage }: Pick<SettingsWithoutSecrets, 'storage'>,
  database: Database | undefined,
): Promise<CheckedTokenStore | undefined> {
  if (storage.redisUrl === undefined) {
    findings.ok('redis', 'not used: the tokens are in the database');
    return (
      database && {
        store: createPostgresStore({ database, clock: systemClock }),
        identity: 'none',
      }
    );
  }
  const redis = createRedis(storage.redisUrl);
  try {
    await connectRedis(redis);
    const reports = await reportRedis(redis, systemClock);
    const slowest = Math.max(...reports.map(({ milliseconds }) => milliseconds));
    const count = reports.length === 1 ? 'answers' : `${reports.length} masters answer`;
    findings.ok('redis', `${count} in ${slowest.toFixed(1)} ms`);
    checkVersion(findings, reports);
    await checkKeeping(findings, redis, { ...storage, reports });
    checkMemory(findings, reports);
    checkReplication(findings, reports);
    const [furthest] = reports.toSorted(
      (a, b) => Math.abs(b.clockAheadMs) - Math.abs(a.clockAheadMs),
    );
    if (furthest) checkClock(findings, { store: 'redis', where: WHERE, ...furthest });
    const identity = await redisIdentity(redis);
    return { store: createRedisStore({ redis, clock: systemClock }), identity };
  } catch (error) {
    redis.disconnect();
    findings.problem({
      check: 'redis',
      where: WHERE,
      message: `it cannot be used: ${reasonOf(error)}`,
      remedy: remedyOf(error),
    });
    const told = new Set(findings.all.map(({ check }) => check));
    findings.notChecked(
      CHECKS.filter((check) => !told.has(check)),
      'Redis cannot be used',
    );
    return undefined;
  }
}

function checkVersion(findings: Findings, reports: readonly RedisReport[]): void {
  const versions = [...new Set(reports.map(({ version }) => version))].join(', ');
  const isOld = ({ version }: RedisReport): boolean => {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return major < OLDEST_VERSION[0] || (major === OLDEST_VERSION[0] && minor < OLDEST_VERSION[1]);
  };
  if (!reports.some(isOld)) findings.ok('redis_version', versions);
  else {
    findings.problem({
      check: 'redis_version',
      where: WHERE,
      message: `it is Redis ${versions}`,
      remedy: `upgrade it to ${OLDEST_VERSION.join('.')} or later`,
    });
  }
}

/** Eviction and persistence: whether an acknowledged token stays. */
async function checkKeeping(
  findings: Findings,
  redis: Redis | Cluster,
  {
    acceptVolatileRedis,
    reports,
  }: { acceptVolatileRedis: boolean; reports: readonly RedisReport[] },
): Promise<void> {
  const problems = await redisProblems(redis);
  const eviction = problems.find(({ setting }) => setting === 'maxmemory-policy');
  const persistence = problems.find(({ setting }) => setting === 'appendonly');
  if (eviction) findings.problem({ check: 'redis_eviction', where: WHERE, ...eviction });
  else findings.ok('redis_eviction', 'it evicts nothing (maxmemory-policy noeviction)');

  const check = 'redis_persistence';
  if (persistence && acceptVolatileRedis) {
    const { message, remedy } = persistence;
    const where = 'storage.accept_volatile_redis';
    findings.warning({ check, where, message: `${message}; the settings accept that`, remedy });
  } else if (persistence) findings.problem({ check, where: WHERE, ...persistence });
  else if (reports.some(({ isDiskFailing }) => isDiskFailing)) {
    findings.problem({
      check,
      where: WHERE,
      message: 'the last write to its append-only file failed',
      remedy: 'see the log of Redis: the disk is full, or not writable',
    });
  } else findings.ok(check, 'it keeps an append-only file');
}

function checkMemory(findings: Findings, reports: readonly RedisReport[]): void {
  const limited = reports.filter(({ maxMemory }) => maxMemory > 0);
  const parts = limited.map(({ usedMemory, maxMemory }) => usedMemory / maxMemory);
  const fullest = Math.max(0, ...parts);
  const used = Math.max(...reports.map(({ usedMemory }) => usedMemory));
  const amount = `${(used / 1024 ** 2).toFixed(1)} MiB in use`;
  const share = `${Math.round(fullest * 100)} % of maxmemory`;
  if (fullest < 0.8) {
    findings.ok('redis_memory', `${amount}, ${limited.length > 0 ? share : 'no maxmemory'}`);
    return;
  }
  const trouble = {
    check: 'redis_memory',
    where: WHERE,
    message: `${amount}, ${share}: when it is full no token can be issued any more`,
    remedy: 'raise maxmemory, or move Redis to a machine with more memory',
  };
  if (fullest < 0.95) findings.warning(trouble);
  else findings.problem(trouble);
}

function checkReplication(findings: Findings, reports: readonly RedisReport[]): void {
  const check = 'redis_replication';
  if (reports.some(({ role }) => role !== 'master')) {
    findings.problem({
      check,
      where: WHERE,
      message: 'the URL leads to a replica, which takes no writes',
      remedy: 'lead it to the master, or through Sentinel: redis+sentinel://host1,host2/name',
    });
    return;
  }
  const replicas = Math.min(...reports.map((report) => report.replicas));
  const isGuarded = reports.every(({ needsReplicas }) => needsReplicas);
  if (replicas === 0 || isGuarded) {
    const words = `${replicas} replica(s) follow, and no write is taken without one`;
    findings.ok(check, isGuarded ? words : 'no replica follows');
    return;
  }
  findings.warning({
    check,
    where: WHERE,
    message: `${replicas} replica(s) follow, but a master that is cut off from them goes on taking writes, which a failover then loses`,
    remedy: 'set `min-replicas-to-write 1` and `min-replicas-max-lag 10` in redis.conf',
  });
}

/** What was ended by itself must be gone from it, unless an older one was restored. */
export async function checkEndings(
  findings: Findings,
  database: Database,
  store: TokenStore,
): Promise<void> {
  const parts = { database, clock: systemClock };
  const activity = createActivity(parts);
  const revocations = createRevocations({ ...parts, activity, log: { warn: () => {} } });
  const { length } = await createEndings({ store, revocations, clock: systemClock }).findRevived();
  const check = 'ended_authorizations';
  if (length === 0) return findings.ok(check, 'none of the latest 100 is alive');
  findings.problem({
    check,
    message: `${length} of the latest 100 that were ended are alive: an older token store was restored`,
    where: 'the token store',
    remedy: '`revoke --recorded` ends again all that is recorded as ended',
  });
}
