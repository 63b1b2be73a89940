/** The token store on Redis. Each record has one key. No step needs two keys, so that it works on a Cluster. */
import { Cluster, type Redis } from 'ioredis';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import {
  type AuthorizationFacts,
  type AuthorizationRecord,
  forgottenAt,
  type Issue,
  isStorableId,
  keyOf,
  type RecordKind,
  type StoredRecord,
  type TokenStore,
} from '../token-store.ts';
import { keyOnEachMaster, readsTogether } from './keys.ts';
import { reply, send } from './redis.ts';
import { scriptsOn } from './scripts.ts';

/** A stored record: `<expiry>:<JSON>`, so that a script reads the expiry without parsing JSON. */
const RECORD = /^(\d+):(.*)$/s;
/** Matches an authorization in the format of scripts.ts. Ignores fields that a later version adds before the JSON. */
const AUTHORIZATION = /^(-?\d+)![^!]*!(\d+)!([01])!(\d+)!(\d+)!(\d+)!(\d+)!(\d+)(?:![^:]*)?:(.*)$/s;

const LETTER: Record<RecordKind | 'uid' | 'authorization', string> = {
  authorization: 'z',
  machine_token: 'm',
  session: 's',
  interaction: 'i',
  shown_once: 'o',
  uid: 'u',
};

type Kind = keyof typeof LETTER;
const nameOf = (kind: Kind, id: string): string => `gh:${LETTER[kind]}:${keyOf(id)}`;

export function createRedisStore(parts: {
  redis: Redis | Cluster;
  clock: Clock;
  /** Milliseconds to add to the clock of Redis; only tests use it. */
  timeShift?: () => number;
}): TokenStore {
  const { redis, clock, timeShift = () => 0 } = parts;
  const scripts = scriptsOn(redis);
  const get = readsTogether(redis);
  const getdel = (key: string) => send<string | null>(redis, 'getdel', [key]);

  /** Returns the lifetime in milliseconds; at least 1, because Redis refuses a lower value. */
  const lifetime = (expiresAt: number): number => Math.max(1, expiresAt * 1000 - clock());
  const isExpired = (expiresAt: number): boolean => expiresAt * 1000 <= clock();

  const recordValue = (data: unknown, expiresAt: number): string => `${expiresAt}:${JSON.stringify(data)}`;

  async function write(key: string, data: unknown, expiresAt: number): Promise<void> {
    await reply(send(redis, 'set', [key, recordValue(data, expiresAt), 'PX', lifetime(expiresAt)]));
  }

  /** @param only if given, only a record with this content is replaced */
  async function replace(key: string, data: unknown, expiresAt: number, only?: string): Promise<boolean> {
    const times = [lifetime(expiresAt), epochSeconds(clock)] as const;
    const expected = only === undefined ? '' : JSON.stringify(only);
    const value = recordValue(data, expiresAt);
    return (await reply(scripts.replaceRecord(key, value, ...times, expected))) === 1;
  }

  async function read<Data>(key: string): Promise<StoredRecord<Data> | undefined> {
    return recordFrom(await reply(get(key)));
  }

  function recordFrom<Data>(value: string | null): StoredRecord<Data> | undefined {
    const match = RECORD.exec(value ?? '');
    if (!match) return undefined;
    const expiresAt = Number(match[1]);
    if (isExpired(expiresAt)) return undefined;
    return { data: JSON.parse(match[2] ?? 'null') as Data, expiresAt };
  }

  return {
    isInDatabase: false,

    async beginAuthorization(id, facts, { codeSeconds, absoluteSeconds = 0, clientGeneration = 0 }) {
      const key = nameOf('authorization', id);
      const kept = factsValue(facts);
      const lifetimes = [codeSeconds, absoluteSeconds] as const;
      await reply(scripts.beginAuthorization(key, timeShift(), kept, ...lifetimes, clientGeneration));
    },

    async readAuthorization(id) {
      if (!isStorableId(id)) return undefined;
      const found = authorizationFrom(await reply(get(nameOf('authorization', id))));
      return found && !isExpired(forgottenAt(found)) ? found : undefined;
    },

    async exchangeCode(id, { attempt, refreshSeconds }) {
      if (!isStorableId(id)) return MISSING;
      const key = nameOf('authorization', id);
      return issueFrom(await reply(scripts.exchangeCode(key, timeShift(), attempt, refreshSeconds)));
    },

    async rotate(id, { from, attempt, refreshSeconds, retryWindowSeconds, clientGeneration = 0 }) {
      if (!isStorableId(id)) return MISSING;
      const key = nameOf('authorization', id);
      const lifetimes = [refreshSeconds, retryWindowSeconds] as const;
      const pending = scripts.rotateAuthorization(key, timeShift(), from, attempt, ...lifetimes, clientGeneration);
      return issueFrom(await reply(pending));
    },

    async confirmRotation(id, rotation) {
      await reply(scripts.confirmRotation(nameOf('authorization', id), timeShift(), rotation));
    },

    async endAuthorization(id) {
      if (!isStorableId(id)) return false;
      const found = authorizationFrom(await reply(getdel(nameOf('authorization', id))));
      return found !== undefined && !isExpired(forgottenAt(found));
    },

    async read(kind, id) {
      return isStorableId(id) ? read(nameOf(kind, id)) : undefined;
    },

    write: (kind, id, data, expiresAt) => write(nameOf(kind, id), data, expiresAt),

    async replace(kind, id, data, expiresAt) {
      return isStorableId(id) && replace(nameOf(kind, id), data, expiresAt);
    },

    async remove(kind, id) {
      if (!isStorableId(id)) return false;
      // Check the expiry in the record itself: Redis may delete an expired record late.
      return recordFrom(await reply(getdel(nameOf(kind, id)))) !== undefined;
    },

    async take(kind, id) {
      if (!isStorableId(id)) return undefined;
      return recordFrom(await reply(getdel(nameOf(kind, id))));
    },

    async writeSession(id, uid, data, expiresAt) {
      // Write the session first, so that the index never names a session that does not exist yet.
      const key = nameOf('session', id);
      await write(key, data, expiresAt);
      await write(nameOf('uid', uid), key, expiresAt);
    },

    async replaceSession(id, uid, data, expiresAt) {
      const key = nameOf('session', id);
      if (!isStorableId(id) || !(await replace(key, data, expiresAt))) return false;
      // Replace the index only if it still has this key, because a session that was renewed meanwhile has another key.
      await replace(nameOf('uid', uid), key, expiresAt, key);
      return true;
    },

    async readSessionByUid(uid) {
      if (!isStorableId(uid)) return undefined;
      const pointer = await read<string>(nameOf('uid', uid));
      return pointer && read(pointer.data);
    },

    // Redis deletes expired keys itself.
    removeExpired: async () => 0,

    async ping() {
      // Write, because a server without memory or quorum answers PING, but cannot store a token.
      const keys = redis instanceof Cluster ? keyOnEachMaster(redis, 'gh:ping') : ['gh:ping'];
      const now = String(clock());
      // Also run scripts, a read and a deletion, as requests do, because the Redis account may lack these rights. Send
      // all commands at once: one after another, they could wait for several timeouts.
      const all = (key: string) => [
        redis.set(key, now, 'PX', 60_000),
        scripts.replaceRecord(key, now, 60_000, clock(), ''),
        send(redis, 'eval', ['return 1', 1, key]),
        get(key),
        getdel(key),
      ];
      await reply(Promise.all<unknown>(keys.flatMap(all)));
    },

    async close() {
      redis.disconnect();
    },
  };
}

const MISSING: Issue = { outcome: 'missing' };

/** Returns an array, because an object would repeat the property names in each authorization. */
const factsValue = (facts: AuthorizationFacts): string => {
  const { accountId, clientId, generation, secret, redirectUriHash, codeChallengeHash } = facts;
  const known = [accountId, clientId, generation, secret, redirectUriHash];
  return JSON.stringify(codeChallengeHash === undefined ? known : [...known, codeChallengeHash]);
};

type FactsValue = readonly [
  accountId: string,
  clientId: string,
  generation: number,
  secret: string,
  redirectUriHash: string,
  codeChallengeHash?: string,
];

function authorizationFrom(value: string | null): AuthorizationRecord | undefined {
  const match = AUTHORIZATION.exec(value ?? '');
  if (!match) return undefined;
  const numbers = match.slice(1, 9).map(Number);
  const [rotation = 0, rotatedAt = 0, confirmed, usableUntil = 0, endsAt, approvedAt = 0] = numbers;
  const [clientGeneration = 0, sinceRotation = 0] = numbers.slice(6);
  const facts = JSON.parse(match[9] ?? '') as FactsValue;
  const [accountId, clientId, generation, secret, redirectUriHash, codeChallengeHash] = facts;
  return {
    accountId,
    clientId,
    generation,
    secret,
    redirectUriHash,
    ...(codeChallengeHash !== undefined && { codeChallengeHash }),
    ...(endsAt && { endsAt }),
    approvedAt,
    rotation,
    rotatedAt,
    usableUntil,
    isConfirmed: confirmed === 1,
    clientGeneration,
    sinceRotation,
  };
}

function issueFrom([outcome, now, usableUntil, rotation]: [string, number?, number?, number?]): Issue {
  return (now === undefined ? { outcome } : { outcome, now, usableUntil, rotation }) as Issue;
}
