/** Finds an interrupted backup of Redis, and a full Redis, for `gatehouse doctor`. */
import type { Cluster, Redis } from 'ioredis';
import { mastersOf, reply } from './redis.ts';

const REWRITING = 'auto-aof-rewrite-percentage';
/** By default, Redis rewrites an append-only file of 64 MiB or more that has doubled in size since the last rewrite. */
const isOvergrown = (size: number, rewrittenSize: number): boolean =>
  size > 64 * 1024 ** 2 && size > 10 * rewrittenSize;

/**
 * `isRewritingOff` is true if a master does not rewrite its append-only file, as during a backup. `fullness` is the
 * used part of `maxmemory` of the fullest master; undefined if no master has a limit or shows it.
 * @throws StorageUnavailable if a master does not answer
 */
export async function redisReport(redis: Redis | Cluster) {
  const found = await Promise.all(mastersOf(redis).map(reportOf));
  const parts = found.map(({ fullness }) => fullness).filter(Number.isFinite);
  return {
    isRewritingOff: found.some(({ isRewritingOff }) => isRewritingOff),
    fullness: parts.length > 0 ? Math.max(...parts) : undefined,
  };
}

async function reportOf(master: Redis) {
  // INFO does not show whether rewriting is off. Without access to CONFIG, use the size of the append-only file.
  const [, percentage] = await master.config('GET', REWRITING).catch((): string[] => []);
  const info = await reply(master.info());
  const size = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return {
    isRewritingOff: percentage === '0' || isOvergrown(size('aof_current_size'), size('aof_base_size')),
    // The result is NaN without used_memory, and infinite without maxmemory.
    fullness: (size('used_memory') || NaN) / size('maxmemory'),
  };
}
