/** Collects entries of requests, and writes them in the background, many at once. */
import { outsideRequests } from '../base/current-request.ts';

/**
 * @param options.pauseMs the time from the first waiting entry to the write of all waiting entries
 * @param options.maxWaiting if this many entries wait, further entries are dropped until the next write
 * @param options.keyOf if given, only the latest of several entries with the same key is written
 * @param options.write must not reject. Returns the entries to retry after the next pause; all others are treated
 *   as written.
 */
export function createBackgroundWriter<Entry>(options: {
  pauseMs: number;
  maxWaiting: number;
  keyOf?: (entry: Entry) => unknown;
  write: (entries: readonly Entry[]) => Promise<readonly Entry[]>;
}) {
  const { pauseMs, maxWaiting, keyOf = (entry) => entry, write } = options;
  let waiting = new Map<unknown, Entry>();
  let timer: NodeJS.Timeout | undefined;

  const isFull = (): boolean => waiting.size >= maxWaiting;

  function put(key: unknown, entry: Entry): void {
    if (isFull() && !waiting.has(key)) return;
    waiting.set(key, entry);
    timer ??= outsideRequests(() => setTimeout(() => void flush(), pauseMs)).unref();
  }

  async function writeWaiting(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.size === 0) return;
    const entries = [...waiting.values()];
    waiting = new Map();
    for (const entry of await write(entries)) {
      const key = keyOf(entry);
      if (!waiting.has(key)) put(key, entry);
    }
  }

  // Run one write after another, so that a write finds what the earlier writes have written.
  let work = Promise.resolve();
  function flush(): Promise<void> {
    work = work.then(writeWaiting);
    return work;
  }

  return {
    /** True if a new entry would be dropped. Check this before creating an entry that is costly. */
    isFull,

    /** Only stores the entry in memory, and so never delays a request. */
    add: (entry: Entry): void => put(keyOf(entry), entry),

    flush,

    /** Writes all waiting entries. If this fails, they are lost. */
    async close(): Promise<void> {
      await flush();
      clearTimeout(timer);
    },
  };
}
