/** Stores the latest changes of the feed once for all streams. A reader that reconnects gets the changes it missed. */
import type { ChangeFeed, FeedPosition } from '../storage/change-feed.ts';

/** Milliseconds for which changes are kept. */
const KEPT_FOR = 60_000;
/** Maximum number of stored changes, about 8 MB. One import can change the access of this many users. */
const MAX_CHANGES = 50_000;
/** Maximum number of changes that are repeated for a reader, which must read all of them within two seconds. */
const MAX_REPEATED = 5_000;
/**
 * When a reader continues from a position, changes are repeated from this many milliseconds before it. A change arrives
 * up to 950 ms after its commit, and the feed position that is recorded with the change may be another 950 ms old.
 */
const OVERLAP = 2_000;

const POSITION = /^([0-9a-z]{1,12})-([0-9a-z]{1,12})$/;

const textOf = ({ server, time }: FeedPosition): string => `${server.toString(36)}-${time.toString(36)}`;

export type RecentChanges = ReturnType<typeof createRecentChanges>;

interface RecentChange {
  readonly text: string;
  /** The feed's `position.time` when the change arrived; undefined if the feed had no position. */
  readonly time: number | undefined;
  /** When the change arrived, by `performance.now()`. */
  readonly arrivedAt: number;
}

/** All times are from the database server, so that a reader may continue at a node with another clock. */
export function createRecentChanges(feed: Pick<ChangeFeed, 'position'>) {
  const recent = new Map<number, RecentChange>();
  let first = 0;
  let next = 0;
  /** All changes that were committed after `completeSince` have this number or a higher one, and are kept. */
  let repeatableFrom = 0;
  let completeSince: FeedPosition | undefined;
  let last: FeedPosition | undefined;

  function repeatNone(since: FeedPosition | undefined): void {
    repeatableFrom = next;
    completeSince = since;
  }

  function position(): FeedPosition | undefined {
    const now = feed.position;
    if (!now) repeatNone(undefined);
    else if (now.server !== completeSince?.server) repeatNone(now);
    // The database's clock was set back, so the times of recent changes can no longer be compared.
    else if (last && now.time < last.time) repeatNone(last);
    last = now;
    return now;
  }

  function isOld({ time, arrivedAt }: RecentChange, now: FeedPosition | undefined): boolean {
    if (now && time !== undefined) return time < now.time - KEPT_FOR;
    return arrivedAt < performance.now() - KEPT_FOR;
  }

  return {
    position(): string | undefined {
      const now = position();
      return now && textOf(now);
    },

    add(text: string): void {
      const now = position();
      recent.set(next, { text, time: now?.time, arrivedAt: performance.now() });
      next += 1;
      for (;;) {
        const oldest = recent.get(first);
        if (!oldest || (recent.size <= MAX_CHANGES && !isOld(oldest, now))) return;
        recent.delete(first);
        first += 1;
        if (first <= repeatableFrom) continue;
        repeatableFrom = first;
        if (now && oldest.time !== undefined) {
          completeSince = { server: now.server, time: oldest.time + 1 };
        }
      }
    },

    /** Call this if this node may have missed changes. Readers can then no longer continue from an earlier position. */
    repeatNone: () => repeatNone(undefined),

    get next(): number {
      return next;
    },

    /** Returns the change with this number; undefined if it is no longer stored, or has not arrived yet. */
    find: (number: number): RecentChange | undefined => recent.get(number),

    /**
     * Returns the number of the first change that a reader at this position may have missed; undefined if not all
     * missed changes can be repeated, or if the text is no position.
     */
    after(text: string): number | undefined {
      const [, server = '', time = ''] = POSITION.exec(text) ?? [];
      const from = Number.parseInt(time, 36) - OVERLAP;
      const now = position();
      if (!now || !completeSince || Number.parseInt(server, 36) !== now.server) return undefined;
      if (!(from >= completeSince.time)) return undefined;
      let number = next;
      while (number > repeatableFrom && (recent.get(number - 1)?.time ?? 0) >= from) number -= 1;
      return next - number > MAX_REPEATED ? undefined : number;
    },
  };
}
