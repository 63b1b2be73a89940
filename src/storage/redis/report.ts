/** Tells the doctor about an interrupted backup of Redis. */
import type { Cluster, Redis } from 'ioredis';
import { mastersOf, reply } from './redis.ts';

const REWRITING = 'auto-aof-rewrite-percentage';
/** With the default settings Redis rewrites a file of 64 MiB that has doubled since it was rewritten. */
const isOvergrown = (size: number, rewrittenSize: number): boolean =>
  size > 64 * 1024 ** 2 && size > 10 * rewrittenSize;

/**
 * Returns true if a master does not rewrite its append-only file, as during a backup.
 *
 * @throws StorageUnavailable if a master does not answer.
 */
export async function isRewritingOff(redis: Redis | Cluster): Promise<boolean> {
  const found = await Promise.all(mastersOf(redis).map(isOffAt));
  return found.includes(true);
}

async function isOffAt(master: Redis): Promise<boolean> {
  // INFO does not show this. For an account without the right to CONFIG, only the size of the file reveals it.
  const [, percentage] = await master.config('GET', REWRITING).catch((): string[] => []);
  const info = await reply(master.info('persistence'));
  const size = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return percentage === '0' || isOvergrown(size('aof_current_size'), size('aof_base_size'));
}
