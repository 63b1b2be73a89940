/** Writes in the background what requests leave behind: a moment later, and many entries at once. */
import { outsideRequests } from '../base/current-request.ts';

/**
 * @param pauseMs from the first entry that waits to the write that takes all of them.
 * @param maxWaiting entries beyond that are dropped until the next write.
 * @param keyOf entries with the same key are one, and the later one is written; without it, each is.
 * @param write never rejects. Returns the entries to try again after the next pause; the others are
 *   written, or lost.
 */
export function createBackgroundWriter<Entry extends object>({
  pauseMs,
  maxWaiting,
  keyOf = (entry) => entry,
  write,
}: {
  pauseMs: number;
  maxWaiting: number;
  keyOf?: (entry: Entry) => unknown;
  write: (entries: readonly Entry[]) => Promise<readonly Entry[]>;
}) {
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

  // One write after the other, so that each finds what the one before it wrote.
  let work = Promise.resolve();
  function flush(): Promise<void> {
    work = work.then(writeWaiting);
    return work;
  }

  return {
    /** For callers that can spare the work of making an entry that would be dropped. */
    isFull,

    /** Does nothing else than to remember the entry, so requests may call it. */
    add: (entry: Entry): void => put(keyOf(entry), entry),

    flush,

    /** Writes what waits, and tries none of it again by itself. */
    async close(): Promise<void> {
      await flush();
      clearTimeout(timer);
    },
  };
}
