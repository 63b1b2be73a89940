/** Keeps the changes of the last minute, to repeat them to a reader whose stream was lost. */
import type { ChangeFeed, FeedPosition } from '../storage/change-feed.ts';

/** Milliseconds for which changes are kept. */
const KEPT_FOR = 60_000;
/** Maximum number of changes: all of them must fit into the buffer of a stream. */
const MAX_CHANGES = 800;
/**
 * Milliseconds by which more is repeated than was asked for. A change arrives up to 950 ms after its
 * commit, and the position that is recorded with it may be just as old.
 */
const OVERLAP = 2_000;

const POSITION = /^([0-9a-z]{1,12})-([0-9a-z]{1,12})$/;

/** Returns a position as the text that readers send back. */
const textOf = ({ server, time }: FeedPosition): string =>
  `${server.toString(36)}-${time.toString(36)}`;

/**
 * Times are those of the database server, so that a reader may continue at another node, whatever
 * the clocks of the reader and the nodes show.
 */
export function createRecentChanges(feed: Pick<ChangeFeed, 'position'>) {
  /** Each change with the time of the position that was known when it arrived, oldest first. */
  let recent: { readonly time: number; readonly text: string }[] = [];
  /** `recent` has all changes that were committed later than this. */
  let completeSince: FeedPosition | undefined;
  let last: FeedPosition | undefined;

  function forgetAll(since: FeedPosition | undefined): void {
    recent = [];
    completeSince = since;
  }

  function position(): FeedPosition | undefined {
    const now = feed.position;
    if (!now) forgetAll(undefined);
    else if (now.server !== completeSince?.server) forgetAll(now);
    // The database's clock was set back, so the times of recent changes can no longer be compared.
    else if (last && now.time < last.time) forgetAll(last);
    last = now;
    return now;
  }

  return {
    /** Returns until when the changes were received, as a text for readers. */
    position(): string | undefined {
      const now = position();
      return now && textOf(now);
    },

    add(text: string): void {
      const now = position();
      if (!now) return;
      recent.push({ time: now.time, text });
      for (;;) {
        const [oldest] = recent;
        if (!oldest) return;
        if (recent.length <= MAX_CHANGES && oldest.time >= now.time - KEPT_FOR) return;
        recent.shift();
        completeSince = { server: now.server, time: oldest.time + 1 };
      }
    },

    /** Forgets all changes: everything may have changed. */
    clear: () => forgetAll(undefined),

    /**
     * Returns all changes after this position, and some from before it; undefined if some may be
     * missing, or if the text is no position.
     */
    after(text: string): readonly string[] | undefined {
      const [, server = '', time = ''] = POSITION.exec(text) ?? [];
      const from = Number.parseInt(time, 36) - OVERLAP;
      const now = position();
      if (!now || !completeSince || Number.parseInt(server, 36) !== now.server) return undefined;
      if (!(from >= completeSince.time)) return undefined;
      return recent.filter((change) => change.time >= from).map((change) => change.text);
    },
  };
}
