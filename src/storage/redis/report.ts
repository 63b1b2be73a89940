/** Reports the state of each Redis that stores tokens to operators, mostly from its INFO. */
import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { reply } from './redis.ts';

/** A managed service may hide fields of INFO: they are undefined. */
export interface RedisReport {
  readonly milliseconds: number;
  /** Negative if the clock of Redis is behind the clock of this machine. */
  readonly clockAheadMs: number;
  /** In bytes. A `maxMemory` of 0 means that there is no limit. */
  readonly usedMemory: number | undefined;
  readonly maxMemory: number | undefined;
  /** True if the last write to the append-only file failed. */
  readonly isDiskFailing: boolean;
  /** True if Redis does not rewrite its append-only file, as during a backup. */
  readonly isRewritingOff: boolean;
}

const REWRITING = 'auto-aof-rewrite-percentage';
/** With the default settings Redis rewrites a file of 64 MiB that has doubled since it was rewritten. */
const isOvergrown = (size = 0, rewrittenSize = 0): boolean => size > 64 * 1024 ** 2 && size > 10 * rewrittenSize;

/** Returns one report for each master. @throws StorageUnavailable if a master does not answer. */
export async function reportRedis(redis: Redis | Cluster, clock: Clock): Promise<RedisReport[]> {
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return Promise.all(masters.map((master) => reportOne(master, clock)));
}

async function reportOne(master: Redis, clock: Clock): Promise<RedisReport> {
  const info = await reply(master.info());
  // INFO does not show this. For an account without the right to CONFIG, only the size of the file reveals it.
  const [, percentage] = await master.config('GET', REWRITING).catch((): string[] => []);
  const startedAt = performance.now();
  const ourTime = clock();
  const [seconds, microseconds] = await reply(master.time());
  const milliseconds = performance.now() - startedAt;
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const count = (name: string): number | undefined => {
    const value = field(name);
    return value === undefined ? undefined : Number(value);
  };
  return {
    milliseconds,
    clockAheadMs: Number(seconds) * 1000 + Number(microseconds) / 1000 - ourTime - milliseconds / 2,
    usedMemory: count('used_memory'),
    maxMemory: count('maxmemory'),
    isDiskFailing: field('aof_last_write_status') === 'err',
    isRewritingOff: percentage === '0' || isOvergrown(count('aof_current_size'), count('aof_base_size')),
  };
}
