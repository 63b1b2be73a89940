/** Finds a key on each master of a Redis Cluster, and reads many keys with one command. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import { StorageUnavailable } from '../storage-unavailable.ts';
import { send } from './redis.ts';

/** Maximum number of keys to try until each master has one. Even a master with a thousandth of the slots gets one. */
const MAX_CANDIDATES = 16_384;

/**
 * Returns keys that begin with `name`, one for each master of the Cluster.
 * @throws StorageUnavailable if slots have no master
 */
export function keyOnEachMaster({ slots }: Cluster, name: string): readonly string[] {
  const masters = new Set<string | undefined>();
  for (let slot = 0; slot < SLOTS; slot += 1) masters.add(slots[slot]?.[0]);
  if (masters.has(undefined)) {
    throw new StorageUnavailable('redis', new Error('the cluster has slots without a master'));
  }
  const keys: string[] = [];
  for (let count = 0; masters.size > 0 && count < MAX_CANDIDATES; count += 1) {
    const key = `${name}:${count}`;
    if (masters.delete(slots[slotOf(key)]?.[0])) keys.push(key);
  }
  return keys;
}

const SLOTS = 16_384;

/** The slot of a key without braces: its CRC-16/XMODEM (Redis Cluster specification). */
function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
    }
  }
  return crc % SLOTS;
}

/**
 * Combines the reads of one turn of the event loop into one command, because a command costs much more than an
 * additional key in a command. Not used for a Cluster, whose keys are on different masters.
 */
export function readsTogether(redis: Redis | Cluster): (key: string) => Promise<string | null> {
  if (redis instanceof Cluster) return (key) => send(redis, 'get', [key]);
  let turn: { readonly keys: string[]; readonly values: Promise<(string | null)[]> } | undefined;

  async function readTurn(keys: string[]): Promise<(string | null)[]> {
    await nextTurn();
    turn = undefined;
    return send(redis, 'mget', keys);
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
