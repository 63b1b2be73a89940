/** The doctor's check of the token store: durability and clock of Redis. */
import { systemClock } from '../base/clock.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { createPostgresStore } from '../storage/postgres-store.ts';
import type { Database } from '../storage/queries.ts';
import { connectRedis, createRedis, redisIdentity, redisProblems } from '../storage/redis/redis.ts';
import { type RedisReport, reportRedis } from '../storage/redis/report.ts';
import { createRedisStore } from '../storage/redis/store.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { clockVerdict, reasonOf, remedyOf } from './database.ts';
import { type Findings, notChecked, ok, problem, type Verdict, warning } from './findings.ts';

const WHERE = 'REDIS_URL';
const MIN_VERSION = [6, 2] as const;
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
  /** The id stored in this Redis; `none` without Redis, undefined if no node has stored one. */
  readonly identity: string | undefined;
}

/** @returns the token store, which the caller closes, or undefined if it cannot be used */
export async function checkTokenStore(
  findings: Findings,
  { storage }: Pick<SettingsWithoutSecrets, 'storage'>,
  database: Database | undefined,
): Promise<CheckedTokenStore | undefined> {
  if (storage.redisUrl === undefined) {
    findings.add('redis', WHERE, ok('not used: the tokens are in the database'));
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
    const [furthest] = reports.toSorted((a, b) => Math.abs(b.clockAheadMs) - Math.abs(a.clockAheadMs));
    findings.add('redis', WHERE, answerVerdict(reports));
    findings.add('redis_version', WHERE, versionVerdict(reports));
    const keeping = await redisProblems(redis);
    findings.add('redis_eviction', WHERE, evictionVerdict(keeping));
    findings.add('redis_persistence', WHERE, persistenceVerdict(keeping, reports));
    findings.add('redis_memory', WHERE, memoryVerdict(reports));
    findings.add('redis_replication', WHERE, replicationVerdict(reports));
    if (furthest) findings.add('redis_clock', WHERE, clockVerdict(furthest));
    const identity = await redisIdentity(redis);
    return { store: createRedisStore({ redis, clock: systemClock }), identity };
  } catch (error) {
    redis.disconnect();
    const message = `Redis cannot be used: ${reasonOf(error)}`;
    findings.add('redis', WHERE, problem(message, remedyOf(error)));
    const reported = new Set(findings.all.map(({ check }) => check));
    findings.notChecked(
      CHECKS.filter((check) => !reported.has(check)),
      'Redis cannot be used',
    );
    return undefined;
  }
}

type Reports = readonly RedisReport[];

/** Returns the values of one field for all masters; undefined if a master does not report it. */
function valuesOf<Name extends keyof RedisReport>(reports: Reports, name: Name) {
  const values = reports.map((report) => report[name]).filter((value) => value !== undefined);
  return values.length === reports.length ? values : undefined;
}

const hidden = (fields: string): Verdict => notChecked(`INFO of Redis does not show ${fields}`);

function answerVerdict(reports: Reports): Verdict {
  const slowest = Math.max(...reports.map(({ milliseconds }) => milliseconds));
  const count = reports.length === 1 ? 'answers' : `${reports.length} masters answer`;
  return ok(`${count} in ${slowest.toFixed(1)} ms`);
}

function versionVerdict(reports: Reports): Verdict {
  const reported = valuesOf(reports, 'version');
  if (!reported) return hidden('redis_version');
  const versions = [...new Set(reported)].join(', ');
  const isOld = (version: string): boolean => {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1]);
  };
  if (!reported.some(isOld)) return ok(versions);
  return problem(`the version is Redis ${versions}`, `upgrade Redis to ${MIN_VERSION.join('.')} or later`);
}

type Keeping = Awaited<ReturnType<typeof redisProblems>>;

/** Reports whether Redis may evict keys, which would lose issued tokens. */
function evictionVerdict(keeping: Keeping): Verdict {
  const found = keeping.find(({ setting }) => setting === 'maxmemory-policy');
  if (found?.isUnknown) return hidden('maxmemory_policy, which must be noeviction');
  if (found) return problem(found.message, found.remedy);
  return ok('eviction is off (maxmemory-policy noeviction)');
}

function persistenceVerdict(keeping: Keeping, reports: Reports): Verdict {
  const found = keeping.find(({ setting }) => setting === 'appendonly');
  if (found?.isUnknown) return hidden('aof_enabled');
  if (found) return warning(found.message, found.remedy);
  if (reports.some(({ isDiskFailing }) => isDiskFailing)) {
    return problem(
      'the last write to the append-only file failed',
      'see the log of Redis: the disk may be full or read-only',
    );
  }
  if (!reports.some(({ isRewritingOff }) => isRewritingOff)) return ok('the append-only file is on');
  // No problem: each backup turns it off, and lasts for minutes.
  return warning(
    'Redis does not rewrite its append-only file (auto-aof-rewrite-percentage is 0), which grows ' +
      'until the disk is full',
    'if no backup is running, one was interrupted: `redis-cli config set auto-aof-rewrite-percentage 100`',
  );
}

function memoryVerdict(reports: Reports): Verdict {
  const used = valuesOf(reports, 'usedMemory');
  const limits = valuesOf(reports, 'maxMemory');
  if (!used || !limits) return hidden('used_memory and maxmemory');
  const parts = used.flatMap((bytes, index) => (limits[index] ? bytes / limits[index] : []));
  const fullest = Math.max(0, ...parts);
  const amount = `${(Math.max(...used) / 1024 ** 2).toFixed(1)} MiB in use`;
  const share = `${Math.round(fullest * 100)} % of maxmemory`;
  if (fullest < 0.8) return ok(`${amount}, ${parts.length > 0 ? share : 'no maxmemory'}`);
  const verdict = fullest < 0.95 ? warning : problem;
  return verdict(
    `${amount}, ${share}: when memory is full, no token can be issued`,
    'raise maxmemory, or move Redis to a machine with more memory',
  );
}

function replicationVerdict(reports: Reports): Verdict {
  const counts = valuesOf(reports, 'replicas');
  const roles = valuesOf(reports, 'role');
  if (!counts || !roles) return hidden('role and connected_slaves');
  if (roles.some((role) => role !== 'master')) {
    return problem(
      'the URL leads to a replica, which refuses writes',
      'point the URL to the master, or use Sentinel: redis+sentinel://host1,host2/name',
    );
  }
  const replicas = Math.min(...counts);
  if (reports.every(({ needsReplicas }) => needsReplicas)) {
    return ok(`${replicas} replica(s) connected; without a replica the master refuses writes`);
  }
  if (replicas === 0) return ok('no replica is connected');
  // After a failover the only replica is the master; requiring one would stop its writes.
  if (replicas === 1) return ok('1 replica is connected, which is too few for min-replicas-to-write');
  return warning(
    `${replicas} replica(s) connected, but a master that is cut off from them keeps ` +
      'accepting writes, which are lost in a failover',
    'set `min-replicas-to-write 1` and `min-replicas-max-lag 10` in redis.conf',
  );
}
