/** The ended ids of an owner, such as the ended authorizations of an account, which each request checks. */
import type { Clock } from '../base/clock.ts';
import { createCache } from './cache.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';

/** The maximum number of ended ids that are read with their owner. */
const MAX_READ = 100;
/** For owners with more ids, single answers are cached: for so many owners, and so many ids of each. */
const MAX_OWNERS = 100;
const MAX_ASKED = 1_000;

const NONE: readonly string[] = [];

/** Returns SQL for an array of the first ended ids. @param select a SELECT of the ids, without a limit */
export const endedIdsSql = (select: string): string => `ARRAY(${select} LIMIT ${MAX_READ + 1})`;

/** Returns all ended ids from the array of `endedIdsSql`; undefined if there are too many to cache. */
export function endedIdsFrom(ids: readonly string[]): readonly string[] | undefined {
  if (ids.length === 0) return NONE;
  return ids.length > MAX_READ ? undefined : ids;
}

/**
 * Returns a function that tells whether an id of this owner has ended.
 *
 * @param parts `topic` announces each end, with a key that begins with the owner; `ask` reads whether one id has ended,
 * for owners with too many ids to cache
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
    // An end removes the owner's map, so an answer that was read before the end is not used after it.
    const known = await answers.get(owner, async () => new Map());
    const remembered = known.get(id);
    if (remembered !== undefined) return remembered;
    const hasEnded = await ask(id, owner);
    if (known.size < MAX_ASKED) known.set(id, hasEnded);
    return hasEnded;
  };
}
