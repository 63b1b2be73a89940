/** What an operator wants to know of each Redis that keeps tokens, from its own INFO. */
import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { reply } from './redis.ts';

export interface RedisReport {
  readonly version: string;
  readonly role: string;
  readonly milliseconds: number;
  /** How far its clock is ahead of ours; negative where it is behind. */
  readonly clockAheadMs: number;
  /** Bytes; 0 is without a limit. */
  readonly usedMemory: number;
  readonly maxMemory: number;
  readonly replicas: number;
  /** Whether it refuses writes that no replica would get. */
  readonly needsReplicas: boolean;
  /** Whether its last write to the append-only file failed. */
  readonly isDiskFailing: boolean;
}

/** One report for each master. @throws StorageUnavailable when one does not answer. */
export async function reportRedis(redis: Redis | Cluster, clock: Clock): Promise<RedisReport[]> {
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return Promise.all(masters.map((master) => reportOne(master, clock)));
}

async function reportOne(master: Redis, clock: Clock): Promise<RedisReport> {
  const info = await reply(master.info());
  const asked = performance.now();
  const ours = clock();
  const [seconds, microseconds] = await reply(master.time());
  const milliseconds = performance.now() - asked;
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  return {
    version: field('redis_version') ?? '',
    role: field('role') ?? '',
    milliseconds,
    clockAheadMs: Number(seconds) * 1000 + Number(microseconds) / 1000 - ours - milliseconds / 2,
    usedMemory: Number(field('used_memory')),
    maxMemory: Number(field('maxmemory')),
    replicas: Number(field('connected_slaves')),
    // Told only where min-replicas-to-write is set.
    needsReplicas: field('min_slaves_good_slaves') !== undefined,
    isDiskFailing: field('aof_last_write_status') === 'err',
  };
}
