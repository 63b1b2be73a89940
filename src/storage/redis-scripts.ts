/** What Redis does in one step that takes it more than one command. Each script has one key. */
import type { Cluster, Redis, Result } from 'ioredis';

/** Replaced only while it is there, by the service's clock: Redis may drop it later. */
const REPLACE = `
  local expiry = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)')
  if not expiry or tonumber(expiry) <= tonumber(ARGV[3]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
`;

/** Begun again only while it stands at its beginning: an exchange that failed may be repeated. */
const START_FAMILY = `
  local rotation = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)!')
  if rotation and rotation ~= '0' then return end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
`;

/** Consumed only once: the mark is set where there is none, or is this attempt's own. */
const CONSUME_CODE = `
  local value = redis.call('GET', KEYS[1])
  if not value then return 0 end
  local expiry, mark, body = string.match(value, '^(%d+)([^:]*):(.*)$')
  if tonumber(expiry) <= tonumber(ARGV[2]) then return 0 end
  if mark ~= '' then return mark == '!' .. ARGV[1] and 1 or 0 end
  redis.call('SET', KEYS[1], expiry .. '!' .. ARGV[1] .. ':' .. body, 'KEEPTTL')
  return 1
`;

/** Advances only a family that exists and is behind; a repeated attempt finds itself. */
const ADVANCE_FAMILY = `
  local value = redis.call('GET', KEYS[1])
  if not value then return 'missing' end
  local rotation, attempt, expiry = string.match(value, '^(%d+)!([^!]*)!%d+!(%d+):')
  if tonumber(expiry) <= tonumber(ARGV[5]) then return 'missing' end
  if tonumber(rotation) < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
    return 'advanced'
  end
  if rotation == ARGV[1] and attempt == ARGV[2] then return 'advanced' end
  return 'already'
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    replaceRecord(
      key: string,
      value: string,
      lifetime: number,
      now: number,
    ): Result<number, Context>;
    consumeCode(key: string, attempt: string, now: number): Result<number, Context>;
    startFamily(key: string, value: string, lifetime: number): Result<null, Context>;
    advanceFamily(
      key: string,
      rotation: number,
      attempt: string,
      value: string,
      lifetime: number,
      now: number,
    ): Result<'advanced' | 'already' | 'missing', Context>;
  }
}

const SCRIPTS = {
  replaceRecord: REPLACE,
  consumeCode: CONSUME_CODE,
  startFamily: START_FAMILY,
  advanceFamily: ADVANCE_FAMILY,
};

/** The commands that the scripts add to a client. */
export const SCRIPT_COMMANDS: readonly string[] = Object.keys(SCRIPTS);

/** Adds the scripts to the commands of this client. */
export function defineScripts(redis: Redis | Cluster): void {
  for (const [name, lua] of Object.entries(SCRIPTS)) {
    redis.defineCommand(name, { numberOfKeys: 1, lua });
  }
}
