/** Lua scripts for atomic steps that need more than one Redis command. Each script has one key. */
import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { REMEMBER_CODE_SECONDS, REMEMBER_EXPIRED_SECONDS } from '../token-store.ts';
import { send } from './redis.ts';

/**
 * Replaces a record only if it exists and has not expired by the service's clock. The clock of Redis may be slow, so
 * Redis may still have an expired record. If ARGV[4] is not empty, only a record with that content is replaced.
 */
const REPLACE = `
  local expiry, data = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
  if not expiry or tonumber(expiry) <= tonumber(ARGV[3]) then return 0 end
  if ARGV[4] ~= '' and data ~= ARGV[4] then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
`;

/**
 * An authorization is `<rotation>!<attempt>!<rotated at>!<confirmed>!<usable until>!<ends at>!
 * <approved at>!<client generation>!<since rotation>:<JSON of the facts>`; an `<ends at>` of 0 means never. A later
 * version may add values before the colon, each with a `!` in front of it; they are kept in `more`. ARGV[1] is the
 * clock shift, the milliseconds to add to the clock of Redis: 0 except in tests.
 */
const AUTHORIZATION = `
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
  local now = math.floor(ms / 1000)

  local function load()
    local value = redis.call('GET', KEYS[1])
    if not value then return nil end
    local a = {}
    a.rotation, a.attempt, a.rotatedAt, a.confirmed, a.usableUntil, a.endsAt, a.approvedAt, a.generation,
      a.since, a.more, a.facts =
      string.match(value, '^(-?%d+)!([^!]*)!(%d+)!([01])!(%d+)!(%d+)!(%d+)!(%d+)!(%d+)([^:]*):(.*)$')
    for _, name in ipairs({ 'rotation', 'rotatedAt', 'usableUntil', 'endsAt', 'approvedAt', 'generation',
        'since' }) do
      a[name] = tonumber(a[name])
    end
    local remember = a.rotation < 0 and ${REMEMBER_CODE_SECONDS} or ${REMEMBER_EXPIRED_SECONDS}
    if a.usableUntil + remember <= now then return nil end
    return a
  end

  local function save(a)
    local remember = a.rotation < 0 and ${REMEMBER_CODE_SECONDS} or ${REMEMBER_EXPIRED_SECONDS}
    local value = string.format('%d!%s!%.0f!%s!%.0f!%.0f!%.0f!%d!%d%s:%s', a.rotation, a.attempt,
      a.rotatedAt, a.confirmed, a.usableUntil, a.endsAt, a.approvedAt, a.generation, a.since, a.more, a.facts)
    redis.call('SET', KEYS[1], value, 'PX',
      string.format('%.0f', math.max(1, (a.usableUntil + remember) * 1000 - ms)))
  end

  local function issue(a, rotation, attempt, seconds)
    a.rotation, a.attempt, a.rotatedAt, a.confirmed = rotation, attempt, ms, '0'
    a.usableUntil = now + tonumber(seconds)
    if a.endsAt > 0 then a.usableUntil = math.min(a.usableUntil, a.endsAt) end
    save(a)
    return { 'issued', now, a.usableUntil, rotation }
  end

`;

/** Begins an authorization. ARGV: clock shift, facts, code lifetime, absolute lifetime or 0, client generation. */
const BEGIN = `${AUTHORIZATION}
  local absolute = tonumber(ARGV[4])
  save({ rotation = -1, attempt = '', rotatedAt = ms, confirmed = '0', approvedAt = now,
    usableUntil = now + tonumber(ARGV[3]), endsAt = absolute > 0 and now + absolute or 0,
    generation = tonumber(ARGV[5]), since = 0, more = '', facts = ARGV[2] })
`;

/** Consumes a code. A repeated attempt succeeds, too. ARGV: clock shift, attempt, refresh token lifetime in seconds. */
const EXCHANGE = `${AUTHORIZATION}
  local a = load()
  if not a then return { 'missing' } end
  if a.rotation == 0 and a.attempt == ARGV[2] then return { 'issued', now, a.usableUntil, 0 } end
  if a.rotation >= 0 then return { 'replayed' } end
  if a.usableUntil <= now then return { 'expired' } end
  return issue(a, 0, ARGV[2], ARGV[3])
`;

/** Rotates a refresh token. ARGV: shift, from, attempt, refresh seconds, retry window seconds, client generation. */
const ROTATE = `${AUTHORIZATION}
  local a = load()
  local from, generation = tonumber(ARGV[2]), tonumber(ARGV[6])
  if not a then return { 'missing' } end
  -- The node still has the client as it was before a renewal, so the caller may have used a stolen secret.
  if a.generation > generation then return { 'renewed' } end
  if a.endsAt > 0 and a.endsAt <= now then return { 'too_old' } end
  -- Ahead of the record: the store lost its last writes (a crash, a failover, a backup). The value
  -- is genuine, so its honest holder goes on from there. If the exchange was lost, too (-1),
  -- usableUntil is the expiry of the code, and not of this value.
  local isFirst = a.generation < generation
  if isFirst or from >= a.rotation then
    if a.rotation >= 0 and a.usableUntil <= now then return { 'expired' } end
    local rotation = math.max(from, a.rotation) + 1
    if isFirst then a.generation, a.since = generation, rotation end
    return issue(a, rotation, ARGV[3], ARGV[4])
  end
  if from == a.rotation - 1 or a.rotation == a.since then
    if a.attempt == ARGV[3] then return { 'issued', now, a.usableUntil, a.rotation } end
    local window = tonumber(ARGV[5]) * 1000
    if window > 0 and (a.confirmed == '0' or ms - a.rotatedAt < window) then
      if a.usableUntil <= now then return { 'expired' } end
      return { 'retried', now, a.usableUntil, a.rotation }
    end
  end
  return { 'replayed' }
`;

/** Confirms the current refresh token. ARGV: clock shift, number of the token. */
const CONFIRM = `${AUTHORIZATION}
  local a = load()
  if not a or a.rotation ~= tonumber(ARGV[2]) or a.confirmed == '1' then return end
  a.confirmed = '1'
  save(a)
`;

/** The reply of a script. The values after the outcome are present only for `issued` and `retried`. */
type IssueReply = [outcome: string, now?: number, usableUntil?: number, rotation?: number];

/** Returns a function for each script. Not `defineCommand` of ioredis, whose commands survive (see `BriefCommand`). */
export function scriptsOn(redis: Redis | Cluster) {
  function script<Reply, Args extends readonly (string | number)[]>(lua: string) {
    const sha = createHash('sha1').update(lua).digest('hex');
    return async (key: string, ...args: Args): Promise<Reply> => {
      try {
        return await send<Reply>(redis, 'evalsha', [sha, 1, key, ...args]);
      } catch (error) {
        // This Redis has not loaded the script yet, so it has run nothing. EVAL also loads it.
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return send<Reply>(redis, 'eval', [lua, 1, key, ...args]);
      }
    };
  }

  return {
    replaceRecord: script<number, [value: string, lifetime: number, now: number, only: string]>(REPLACE),
    beginAuthorization: script<
      null,
      [shift: number, facts: string, codeSeconds: number, absoluteSeconds: number, clientGeneration: number]
    >(BEGIN),
    exchangeCode: script<IssueReply, [shift: number, attempt: string, refreshSeconds: number]>(EXCHANGE),
    rotateAuthorization: script<
      IssueReply,
      [
        shift: number,
        from: number,
        attempt: string,
        refreshSeconds: number,
        retryWindowSeconds: number,
        clientGeneration: number,
      ]
    >(ROTATE),
    confirmRotation: script<null, [shift: number, rotation: number]>(CONFIRM),
  };
}
