/** The doctor's checks of PostgreSQL and Redis: clocks, notifications, limits and durability. */
import { connectionLimits, notificationMilliseconds } from '../storage/database-report.ts';
import type { RedisProblem } from '../storage/redis/redis.ts';
import type { RedisReport } from '../storage/redis/report.ts';
import { type Check, check } from './check.ts';
import { notChecked, ok, problem, type Verdict, warning } from './findings.ts';
import { runningOf } from './needs.ts';

const CLOCK_WARNING_MS = 1_000;
const CLOCK_PROBLEM_MS = 5_000;

/** @param clockAheadMs negative if the clock is behind */
export function clockVerdict(clockAheadMs: number, whose = 'its clock', than = "this machine's"): Verdict {
  const size = Math.abs(clockAheadMs);
  if (size <= CLOCK_WARNING_MS) return ok(`differs from ${than} by ${Math.round(size)} ms`);
  const status = size > CLOCK_PROBLEM_MS ? problem : warning;
  return status`${whose} is ${(size / 1000).toFixed(1)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} ${than} →
    synchronize both clocks with chrony or systemd-timesyncd: token lifetimes depend on them`;
}

/** Declares a check of the Redis that stores the tokens, which does not apply without Redis. */
const redisCheck = (
  name: string,
  verdict: (reports: readonly RedisReport[], problems: readonly RedisProblem[]) => Verdict,
): Check =>
  check(`redis_${name}`, ['tokens'], 'REDIS_URL', ({ tokens: { redis } }) =>
    redis ? verdict(redis.reports, redis.problems) : [],
  );

/** A managed service may hide fields of INFO. */
const hidden = (fields: string): Verdict => notChecked(`INFO of Redis does not show ${fields}`);

export const STORE_CHECKS: readonly Check[] = [
  // Opening the database reports pending migrations; this reports them as not checked if the server does not answer.
  check('migrations', ['server'], '', () => []),

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
    // Each node also has one connection for notifications.
    const needed = running.reduce((sum, connections) => sum + connections + 1, 0);
    const [lowest] = (await connectionLimits(database)).sort((a, b) => a.limit - b.limit);
    const opens = `${running.length} node(s) may open ${needed} connections`;
    if (!lowest || lowest.limit >= needed) return ok(opens);
    return warning`${opens}, but ${lowest.whose} allows ${lowest.limit}: at the limit, requests fail with 503 →
      raise the limit (${lowest.remedy}), or lower storage.database_connections`;
  }),

  redisCheck('eviction', (_reports, problems) => {
    const found = problems.find(({ setting }) => setting === 'maxmemory-policy');
    if (found?.isUnknown) return hidden('maxmemory_policy, which must be noeviction');
    return found ? problem`${found.message} → ${found.remedy}` : ok('eviction is off (maxmemory-policy noeviction)');
  }),

  redisCheck('persistence', (reports, problems) => {
    const found = problems.find(({ setting }) => setting === 'appendonly');
    if (found?.isUnknown) return hidden('aof_enabled');
    if (found) return warning`${found.message} → ${found.remedy}`;
    if (reports.some(({ isDiskFailing }) => isDiskFailing)) {
      return problem`the last write to the append-only file failed →
        see the log of Redis: the disk may be full or read-only`;
    }
    if (!reports.some(({ isRewritingOff }) => isRewritingOff)) return ok('the append-only file is on');
    // This is only a warning, because each backup turns rewriting off for minutes.
    return warning`Redis does not rewrite its append-only file (auto-aof-rewrite-percentage is 0), which grows until the
      disk is full → if no backup is running, one was interrupted: \`redis-cli config set
      auto-aof-rewrite-percentage 100\``;
  }),

  redisCheck('memory', (reports) => {
    const parts = reports.map(({ usedMemory = NaN, maxMemory = NaN }) =>
      maxMemory === 0 ? 0 : usedMemory / maxMemory,
    );
    const fullest = Math.max(...parts);
    if (Number.isNaN(fullest)) return hidden('used_memory or maxmemory');
    const amount = fullest > 0 ? `${Math.round(fullest * 100)} % of maxmemory in use` : 'no maxmemory';
    if (fullest < 0.8) return ok(amount);
    const status = fullest < 0.95 ? warning : problem;
    return status`${amount}: when memory is full, no token can be issued →
      raise maxmemory, or move Redis to a machine with more memory`;
  }),

  redisCheck('clock', (reports) => {
    const [furthest] = reports.toSorted((a, b) => Math.abs(b.clockAheadMs) - Math.abs(a.clockAheadMs));
    return furthest ? clockVerdict(furthest.clockAheadMs) : notChecked('Redis has no master');
  }),
];
