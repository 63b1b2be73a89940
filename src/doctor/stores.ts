/** The doctor's checks of PostgreSQL and Redis: clocks, notifications, limits and durability. */
import { connectionLimits, notificationMilliseconds } from '../storage/database-report.ts';
import type { RedisProblem } from '../storage/redis/redis.ts';
import type { RedisReport } from '../storage/redis/report.ts';
import { type Check, check } from './check.ts';
import { notChecked, ok, problem, type Verdict, warning } from './findings.ts';
import { runningOf } from './needs.ts';

const CLOCK_WARNING_MS = 1_000;
const CLOCK_PROBLEM_MS = 5_000;
const MIN_REDIS_VERSION = '6.2';

/** @param clockAheadMs negative if the clock is behind */
export function clockVerdict(
  { clockAheadMs }: { readonly clockAheadMs: number },
  whose = 'its clock',
  than = "this machine's",
): Verdict {
  const size = Math.abs(clockAheadMs);
  if (size <= CLOCK_WARNING_MS) return ok(`differs from ${than} by ${Math.round(size)} ms`);
  const status = size > CLOCK_PROBLEM_MS ? problem : warning;
  return status`${whose} is ${(size / 1000).toFixed(1)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} ${than} →
    synchronize both clocks with chrony or systemd-timesyncd: token lifetimes depend on them`;
}

type Shown<Field extends keyof RedisReport> = RedisReport & {
  readonly [Name in Field]: NonNullable<RedisReport[Name]>;
};

/**
 * A check of the Redis that stores the tokens; does not apply without Redis.
 *
 * @param fields what INFO of each master has to show, which a managed service may hide
 */
const redisCheck = <Field extends keyof RedisReport = never>(
  name: string,
  fields: readonly Field[],
  verdict: (reports: readonly Shown<Field>[], problems: readonly RedisProblem[]) => Verdict,
): Check =>
  check(`redis_${name}`, ['tokens'], 'REDIS_URL', ({ tokens: { redis } }) => {
    if (!redis) return [];
    const isShown = redis.reports.every((report) => fields.every((field) => report[field] !== undefined));
    return isShown ? verdict(redis.reports as readonly Shown<Field>[], redis.problems) : HIDDEN;
  });

const HIDDEN = notChecked('INFO of Redis does not show it');

export const STORE_CHECKS: readonly Check[] = [
  // The opening of the database reports them, unless the server does not answer.
  check('migrations', ['server'], '', () => []),

  check('database_clock', ['server', 'database'], 'DATABASE_URL', ({ server: { database, report } }) =>
    database.embedded ? [] : clockVerdict(report),
  ),

  check('notifications', ['database'], 'DATABASE_URL', async ({ database }) => {
    if (database.embedded) return ok('not needed: an embedded database has one node');
    const milliseconds = await notificationMilliseconds(database);
    if (milliseconds !== undefined) return ok(`notifications arrive in ${milliseconds.toFixed(1)} ms`);
    return problem`a NOTIFY does not reach a LISTEN: nodes would keep using outdated data → use a URL that bypasses
      the connection pooler, or set the pooler to session mode (pgbouncer: pool_mode = session)`;
  }),

  check('database_connections', ['database', 'nodes', 'settings'], 'DATABASE_URL', async (provided) => {
    const { database, nodes, settings } = provided;
    if (database.embedded) return [];
    const running = runningOf(nodes).map(({ runsWith }) => runsWith.databaseConnections);
    if (running.length === 0) running.push(settings.storage.databaseConnections);
    // Each node has one more connection, for notifications.
    const needed = running.reduce((sum, connections) => sum + connections + 1, 0);
    const [lowest] = (await connectionLimits(database)).sort((a, b) => a.limit - b.limit);
    const opens = `${running.length} node(s) may open ${needed} connections`;
    if (!lowest || lowest.limit >= needed) return ok(opens);
    return warning`${opens}, but ${lowest.whose} allows ${lowest.limit}: at the limit, requests fail with 503 →
      raise the limit (${lowest.remedy}), or lower storage.database_connections`;
  }),

  redisCheck('version', ['version'], (reports) => {
    const versions = [...new Set(reports.map(({ version }) => version))].join(', ');
    const order = new Intl.Collator('en', { numeric: true });
    if (reports.every(({ version }) => order.compare(version, MIN_REDIS_VERSION) >= 0)) return ok(versions);
    return problem`the version is Redis ${versions} → upgrade Redis to ${MIN_REDIS_VERSION} or later`;
  }),

  redisCheck('eviction', [], (_reports, problems) => {
    const found = problems.find(({ setting }) => setting === 'maxmemory-policy');
    if (found?.isUnknown) return notChecked('INFO of Redis does not show maxmemory_policy, which must be noeviction');
    return found ? problem`${found.message} → ${found.remedy}` : ok('eviction is off (maxmemory-policy noeviction)');
  }),

  redisCheck('persistence', [], (reports, problems) => {
    const found = problems.find(({ setting }) => setting === 'appendonly');
    if (found?.isUnknown) return HIDDEN;
    if (found) return warning`${found.message} → ${found.remedy}`;
    if (reports.some(({ isDiskFailing }) => isDiskFailing)) {
      return problem`the last write to the append-only file failed →
        see the log of Redis: the disk may be full or read-only`;
    }
    if (!reports.some(({ isRewritingOff }) => isRewritingOff)) return ok('the append-only file is on');
    // No problem: each backup turns it off, and lasts for minutes.
    return warning`Redis does not rewrite its append-only file (auto-aof-rewrite-percentage is 0), which grows until the
      disk is full → if no backup is running, one was interrupted: \`redis-cli config set
      auto-aof-rewrite-percentage 100\``;
  }),

  redisCheck('memory', ['usedMemory', 'maxMemory'], (reports) => {
    const parts = reports.flatMap(({ usedMemory, maxMemory }) => (maxMemory ? usedMemory / maxMemory : []));
    const fullest = Math.max(0, ...parts);
    const share = parts.length > 0 ? `${Math.round(fullest * 100)} % of maxmemory` : 'no maxmemory';
    const amount = `${(Math.max(...reports.map(({ usedMemory }) => usedMemory)) / 1024 ** 2).toFixed(1)} MiB in use, ${share}`;
    if (fullest < 0.8) return ok(amount);
    const status = fullest < 0.95 ? warning : problem;
    return status`${amount}: when memory is full, no token can be issued →
      raise maxmemory, or move Redis to a machine with more memory`;
  }),

  redisCheck('replication', ['role', 'replicas'], (reports) => {
    if (reports.some(({ role }) => role !== 'master')) {
      return problem`the URL leads to a replica, which refuses writes →
        point the URL to the master, or use Sentinel: redis+sentinel://host1,host2/name`;
    }
    const replicas = Math.min(...reports.map(({ replicas }) => replicas));
    if (reports.every(({ needsReplicas }) => needsReplicas)) {
      return ok(`${replicas} replica(s) connected; without a replica the master refuses writes`);
    }
    if (replicas === 0) return ok('no replica is connected');
    // After a failover the only replica is the master; requiring one would stop its writes.
    if (replicas === 1) return ok('1 replica is connected, which is too few for min-replicas-to-write');
    return warning`${replicas} replica(s) connected, but a master cut off from them accepts writes, which a failover loses
      → set \`min-replicas-to-write 1\` and \`min-replicas-max-lag 10\` in redis.conf`;
  }),

  redisCheck('clock', [], (reports) => {
    const [furthest] = reports.toSorted((a, b) => Math.abs(b.clockAheadMs) - Math.abs(a.clockAheadMs));
    return furthest ? clockVerdict(furthest) : HIDDEN;
  }),
];
