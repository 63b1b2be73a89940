/** Every key there is, for what is looked through as a whole. */
import type { Cluster, Redis } from 'ioredis';
import { mastersOf, reply } from './redis.ts';

/** The keys of all masters, some at a time; one may be named twice, or be gone already. */
export async function* keysLike(redis: Redis | Cluster, pattern: string): AsyncIterable<string[]> {
  for (const master of mastersOf(redis)) {
    let cursor = '0';
    do {
      const asked = master.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
      const [next, keys] = await reply(asked);
      cursor = next;
      yield keys;
    } while (cursor !== '0');
  }
}
