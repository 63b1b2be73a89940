/** Many keys at once: those that are read in one moment, and every one there is. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
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

/**
 * Reads of one turn of the event loop as one command: under load that is many, and a command costs this
 * process more than a key does. Not on a Cluster, where each key has a place of its own.
 */
export function readsTogether(redis: Redis | Cluster): (key: string) => Promise<string | null> {
  if (redis instanceof Cluster) return (key) => redis.get(key);
  let turn: { readonly keys: string[]; readonly values: Promise<(string | null)[]> } | undefined;

  async function readTurn(keys: string[]): Promise<(string | null)[]> {
    await nextTurn();
    turn = undefined;
    return redis.mget(keys);
  }

  return async (key) => {
    if (!turn) {
      const keys: string[] = [];
      turn = { keys, values: readTurn(keys) };
    }
    const place = turn.keys.push(key) - 1;
    return (await turn.values)[place] ?? null;
  };
}
