/** Finds the processes of the stores, whose processor time is a part of the cost of a request. */

import type { Database } from '../src/storage/queries.ts';
import { createRedis } from '../src/storage/redis/redis.ts';
import type { Deployment } from './deployment.ts';

export interface StoreProcesses {
  /** Undefined if the deployment has no Redis. */
  readonly redis?: number;
  /** Undefined if the database is in the process of the service. */
  readonly postgres?: number;
}

export async function storeProcesses(
  { storage: { databaseUrl, redisUrl } }: Pick<Deployment, 'storage'>,
  database: Database,
): Promise<StoreProcesses> {
  return {
    ...(databaseUrl !== undefined && { postgres: await postgresPid(database) }),
    ...(redisUrl !== undefined && { redis: await redisPid(redisUrl) }),
  };
}

async function postgresPid(database: Database): Promise<number> {
  const read = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid";
  const [row] = await database.query<{ pid: string }>(read);
  return Number(row?.pid);
}

async function redisPid(url: string): Promise<number> {
  const redis = createRedis(url);
  await redis.connect();
  const info = await redis.info('server');
  redis.disconnect();
  return Number(/^process_id:(\d+)/m.exec(info)?.[1]);
}
