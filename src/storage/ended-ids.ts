/** Caches which authorizations of an account, or machine tokens of a client, have ended. Each request checks them. */
import type { Clock } from '../base/clock.ts';
import { createCache } from './cache.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';

/** Maximum number of ended ids cached as a list for an account or client. With more ids, single answers are cached. */
const MAX_READ = 100;
/** Maximum numbers of owners with more than `MAX_READ` ended ids, and of cached answers for each of them. */
const MAX_OWNERS = 100;
const MAX_ASKED = 1_000;

const NONE: readonly string[] = [];

/** @param select a SELECT of the ids, without a limit */
export const endedIdsSql = (select: string): string => `ARRAY(${select} LIMIT ${MAX_READ + 1})`;

/** @returns undefined if there are too many ids to cache */
export function endedIdsFrom(ids: readonly string[]): readonly string[] | undefined {
  if (ids.length === 0) return NONE;
  return ids.length > MAX_READ ? undefined : ids;
}

/**
 * Returns a function that checks whether an authorization or machine token has ended.
 * @param parts `topic` announces each end, with a key that begins with the owner's id. `ask` queries one id, if its
 * account or client has too many ended ids to cache.
 */
export function createEndedIds(parts: {
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly topic: ChangeTopic;
  readonly ask: (id: string, owner: string) => Promise<boolean>;
}): (owner: string, ended: readonly string[] | undefined, id: string) => Promise<boolean> {
  const { changes, clock, topic, ask } = parts;
  const answers = createCache<Map<string, boolean>>({ changes, clock, topics: [topic], maxSize: MAX_OWNERS });
  return async (owner, ended, id) => {
    if (ended) return ended.includes(id);
    // When a token or authorization of the owner ends, the cache drops this map, so that no outdated answer is used.
    const known = await answers.get(owner, async () => new Map());
    const remembered = known.get(id);
    if (remembered !== undefined) return remembered;
    const hasEnded = await ask(id, owner);
    if (known.size < MAX_ASKED) known.set(id, hasEnded);
    return hasEnded;
  };
}
