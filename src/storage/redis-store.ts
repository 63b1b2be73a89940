/** The token store on Redis: one key a record, no command with more than one key (Cluster). */
import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import { sha256 } from '../random-id.ts';
import { reply } from './redis.ts';
import { defineScripts } from './redis-scripts.ts';
import {
  isStorableId,
  type RecordKind,
  type RecordName,
  type StoredRecord,
  type TokenStore,
} from './token-store.ts';

/**
 * Values are `<expiry>[!<attempt>]:<JSON>`, those of a family
 * `<rotation>!<attempt>!<rotated at>!<expiry>:<JSON>`: the scripts read the part before the colon
 * without parsing JSON, and an access token stays within the 44 bytes that Redis keeps in place.
 */
const RECORD = /^(\d+)(!?)[^:]*:(.*)$/s;
const FAMILY = /^(\d+)![^!]*!(\d+)!(\d+):(.*)$/s;

const LETTER: Record<RecordKind | 'uid' | 'family', string> = {
  access_token: 'a',
  machine_token: 'm',
  code: 'c',
  grant: 'g',
  session: 's',
  interaction: 'i',
  shown_once: 'o',
  uid: 'u',
  family: 'r',
};

/** 22 characters are 132 bits of the hash: nobody finds a second value for a key. */
const keyOf = (kind: keyof typeof LETTER, id: string): string =>
  `gh:${LETTER[kind]}:${sha256(id).slice(0, 22)}`;

export function createRedisStore({
  redis,
  clock,
}: {
  redis: Redis | Cluster;
  clock: Clock;
}): TokenStore {
  defineScripts(redis);

  /** Redis counts time itself, so it is told a duration; at least 1 ms, or it would refuse. */
  const lifetime = (expiresAt: number): number => Math.max(1, expiresAt * 1000 - clock());
  const isExpired = (expiresAt: number): boolean => expiresAt * 1000 <= clock();

  const recordValue = (data: unknown, expiresAt: number): string =>
    `${expiresAt}:${JSON.stringify(data)}`;

  async function write(key: string, data: unknown, expiresAt: number): Promise<void> {
    await reply(redis.set(key, recordValue(data, expiresAt), 'PX', lifetime(expiresAt)));
  }

  async function read<Data>(key: string): Promise<StoredRecord<Data> | undefined> {
    return recordFrom(await reply(redis.get(key)));
  }

  function recordFrom<Data>(value: string | null): StoredRecord<Data> | undefined {
    const match = RECORD.exec(value ?? '');
    if (!match) return undefined;
    const expiresAt = Number(match[1]);
    if (isExpired(expiresAt)) return undefined;
    return {
      data: JSON.parse(match[3] ?? 'null') as Data,
      expiresAt,
      isConsumed: match[2] === '!',
    };
  }

  const familyValue = (
    rotation: number,
    attempt: string,
    now: number,
    expiresAt: number,
    data: unknown,
  ): string => `${rotation}!${attempt}!${now}!${expiresAt}:${JSON.stringify(data)}`;

  return {
    async read(kind, id) {
      return isStorableId(id) ? read(keyOf(kind, id)) : undefined;
    },

    async readBoth<First, Second>(first: RecordName, second: RecordName) {
      const areStorable = isStorableId(first.id) && isStorableId(second.id);
      if (redis instanceof Cluster || !areStorable) {
        return Promise.all([
          this.read<First>(first.kind, first.id),
          this.read<Second>(second.kind, second.id),
        ]);
      }
      const keys = [keyOf(first.kind, first.id), keyOf(second.kind, second.id)];
      const [one = null, other = null] = await reply(redis.mget(keys));
      return [recordFrom<First>(one), recordFrom<Second>(other)] as const;
    },

    write: (kind, id, data, expiresAt) => write(keyOf(kind, id), data, expiresAt),

    async replace(kind, id, data, expiresAt) {
      if (!isStorableId(id)) return false;
      const key = keyOf(kind, id);
      const times = [lifetime(expiresAt), epochSeconds(clock)] as const;
      return (await reply(redis.replaceRecord(key, recordValue(data, expiresAt), ...times))) === 1;
    },

    async remove(kind, id) {
      if (!isStorableId(id)) return false;
      // What is taken out says whether it was still good: Redis may drop it later than we do.
      const match = RECORD.exec((await reply(redis.getdel(keyOf(kind, id)))) ?? '');
      return match !== null && !isExpired(Number(match[1]));
    },

    async take(kind, id) {
      if (!isStorableId(id)) return undefined;
      return recordFrom(await reply(redis.getdel(keyOf(kind, id))));
    },

    async writeSession(id, uid, data, expiresAt) {
      // The session first: an index that points nowhere is harmless, a session nobody finds is not.
      const key = keyOf('session', id);
      await write(key, data, expiresAt);
      await write(keyOf('uid', uid), key, expiresAt);
    },

    async readSessionByUid(uid) {
      if (!isStorableId(uid)) return undefined;
      const pointer = await read<string>(keyOf('uid', uid));
      return pointer && read(pointer.data);
    },

    async consumeCode(id, attempt) {
      if (!isStorableId(id)) return false;
      const key = keyOf('code', id);
      return (await reply(redis.consumeCode(key, attempt, epochSeconds(clock)))) === 1;
    },

    async startFamily(grantId, data, now, expiresAt) {
      const value = familyValue(0, '', now, expiresAt, data);
      await reply(redis.startFamily(keyOf('family', grantId), value, lifetime(expiresAt)));
    },

    async readFamily<Data>(grantId: string) {
      if (!isStorableId(grantId)) return undefined;
      const match = FAMILY.exec((await reply(redis.get(keyOf('family', grantId)))) ?? '');
      if (!match || isExpired(Number(match[3]))) return undefined;
      return {
        rotation: Number(match[1]),
        rotatedAt: Number(match[2]),
        expiresAt: Number(match[3]),
        data: JSON.parse(match[4] ?? 'null') as Data,
      };
    },

    async advanceFamily(grantId, { rotation, attempt, data, now, expiresAt }) {
      if (!isStorableId(grantId)) return 'missing';
      const value = familyValue(rotation, attempt, now, expiresAt, data);
      const key = keyOf('family', grantId);
      const times = [lifetime(expiresAt), epochSeconds(clock)] as const;
      return reply(redis.advanceFamily(key, rotation, attempt, value, ...times));
    },

    async removeFamily(grantId) {
      if (isStorableId(grantId)) await reply(redis.del(keyOf('family', grantId)));
    },

    // Redis expires keys by itself.
    removeExpired: async () => 0,

    async ping() {
      // Not PING: a server that answers but has no memory or quorum left cannot keep a token.
      await reply(redis.set('gh:ping', String(clock()), 'PX', 60_000));
    },

    async close() {
      redis.disconnect();
    },
  };
}
