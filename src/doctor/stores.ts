/** The doctor's checks of PostgreSQL and Redis: connections, eviction and durability. */
import { connectionLimits } from '../storage/database-report.ts';
import type { RedisProblem } from '../storage/redis/redis.ts';
import { type Check, check } from './check.ts';
import { notChecked, ok, problem, type Verdict, warning } from './findings.ts';
import { runningOf } from './needs.ts';

/** Declares a check that does not apply to a deployment without Redis. */
const redisCheck = (
  name: string,
  setting: RedisProblem['setting'],
  status: typeof problem,
  fine: (isRewritingOff: boolean) => Verdict,
): Check =>
  check(`redis_${name}`, ['tokens'], 'REDIS_URL', ({ tokens: { redis } }) => {
    if (!redis) return [];
    const found = redis.problems.find((one) => one.setting === setting);
    // A managed Redis may hide fields of INFO.
    if (found?.isUnknown) return notChecked(found.message);
    return found ? status`${found.message} → ${found.remedy}` : fine(redis.isRewritingOff);
  });

export const STORE_CHECKS: readonly Check[] = [
  // Reports migrations as not checked if the server does not answer. `openSchema` reports pending migrations.
  check('migrations', ['server'], '', () => []),

  check('database_connections', ['database', 'nodes', 'settings'], 'DATABASE_URL', async (provided) => {
    const { database, nodes, settings } = provided;
    if (database.embedded) return [];
    const running = runningOf(nodes).map(({ runsWith }) => runsWith.databaseConnections);
    if (running.length === 0) running.push(settings.storage.databaseConnections);
    // Each node has one more connection, which listens for notifications.
    const needed = running.reduce((sum, connections) => sum + connections + 1, 0);
    const [lowest] = (await connectionLimits(database)).sort((a, b) => a.limit - b.limit);
    const opens = `${running.length} node(s) may open ${needed} connections`;
    if (!lowest || lowest.limit >= needed) return ok(opens);
    return warning`${opens}, but ${lowest.whose} allows ${lowest.limit}: at the limit, requests fail with 503 →
      raise the limit (${lowest.remedy}), or lower storage.database_connections`;
  }),

  redisCheck('eviction', 'maxmemory-policy', problem, () => ok('eviction is off (maxmemory-policy noeviction)')),

  redisCheck('persistence', 'appendonly', warning, (isRewritingOff) => {
    if (!isRewritingOff) return ok('the append-only file is on');
    // Only warn: each backup turns the file's rewriting off for some minutes.
    return warning`Redis does not rewrite its append-only file (auto-aof-rewrite-percentage is 0), which grows until the
      disk is full → if no backup is running, one was interrupted: \`redis-cli config set
      auto-aof-rewrite-percentage 100\``;
  }),

  check('redis_memory', ['tokens'], 'REDIS_URL', ({ tokens: { redis } }) => {
    if (redis?.fullness === undefined) return [];
    const amount = `${Math.round(redis.fullness * 100)} % of maxmemory in use`;
    if (redis.fullness < 0.8) return ok(amount);
    const status = redis.fullness < 0.95 ? warning : problem;
    return status`${amount}: when memory is full, no token can be issued →
      raise maxmemory, or move Redis to a machine with more memory`;
  }),
];
