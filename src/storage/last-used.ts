/** Records when a secret, an API key or a connection was last used; writes it in the background. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { outsideRequests } from '../base/current-request.ts';
import { createBackgroundWriter } from './background-writer.ts';
import { createSlots } from './slots.ts';

export interface Use {
  readonly id: string;
  readonly at: Date;
}

/** Stores the times of uses. Never replaces a later time. */
export type WriteUses = (uses: readonly Use[]) => Promise<void>;

export type LastUsed<Kind extends string> = ReturnType<typeof createLastUsed<Kind>>;

/** Minimum time between two writes for the same id. */
const PRECISION_MS = 5 * 60_000;
/** How long a new use waits, so that it is written together with other uses. */
const PAUSE_MS = 5_000;
const BATCH = 500;
/** Maximum number of ids of a kind that wait for their first write. The uses of further ids are dropped. */
const MAX_WAITING = 100_000;

/**
 * Collects last-used times in memory, and writes batches a few seconds later. Retries failures.
 * @param writers must not replace a stored time with an earlier one
 */
export function createLastUsed<Kind extends string>(parts: {
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly writers: Readonly<Record<Kind, WriteUses>>;
}) {
  const { clock, log, writers } = parts;
  const kinds = Object.entries<WriteUses>(writers).map(
    ([kind, write]) => [kind, createUses({ kind, write, clock, log })] as const,
  );
  const usesOf = new Map<string, ReturnType<typeof createUses>>(kinds);
  const forAll = (work: (uses: ReturnType<typeof createUses>) => unknown) =>
    Promise.all(kinds.map(([, uses]) => work(uses)));
  const timer = outsideRequests(() => setInterval(() => void forAll((uses) => uses.addDue()), PAUSE_MS)).unref();

  return {
    /** Only stores the use in memory, and so never delays a request. */
    record: (kind: Kind, id: string): void => usesOf.get(kind)?.record(id),
    async flush(): Promise<void> {
      await forAll((uses) => uses.flush());
    },
    /** Writes all recorded uses, even those that are not due, and stops the timer. */
    async close(): Promise<void> {
      clearInterval(timer);
      await forAll((uses) => uses.close());
    },
  };
}

/** Collects the uses of one kind. A shared collection could fill with connections, and drop the uses of secrets. */
function createUses(parts: {
  readonly kind: string;
  readonly write: WriteUses;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { kind, write, clock, log } = parts;
  /**
   * The ids. Those that were written within the last minutes are in the list, the oldest write first. So a flush looks
   * only at ids that are due: for 100,000 active users, looking at all ids would stop the process for 100 ms or more.
   */
  const slots = createSlots();
  /** The time of the latest use. */
  const usedAt: number[] = [];
  /** True if there was a use since the last write began. */
  const isUsedAgain: boolean[] = [];
  /** When a use was last written. */
  const writtenAt: number[] = [];
  let isClosing = false;

  async function writeUses(uses: readonly number[]): Promise<readonly number[]> {
    for (let start = 0; start < uses.length; start += BATCH) {
      const batch = uses.slice(start, start + BATCH);
      for (const slot of batch) isUsedAgain[slot] = false;
      const rows = batch.map((slot) => ({ id: slots.keyOf(slot), at: new Date(usedAt[slot] ?? 0) }));
      try {
        // Use the same order on every node, because two nodes that write the same rows must not deadlock.
        await write(rows.sort((a, b) => (a.id < b.id ? -1 : 1)));
      } catch (err) {
        log.warn({ err, kind }, 'the time of the last use could not be written');
        return uses.slice(start);
      }
      for (const slot of batch) {
        writtenAt[slot] = clock();
        slots.put(slot);
      }
    }
    return [];
  }

  const writer = createBackgroundWriter({
    pauseMs: PAUSE_MS,
    maxWaiting: Number.POSITIVE_INFINITY,
    write: writeUses,
  });

  /** Queues each due id for another write if it was used after its last write, and otherwise forgets it. */
  function addDue(): void {
    const now = clock();
    while (slots.total() > 0) {
      const slot = slots.oldest();
      const age = now - (writtenAt[slot] ?? 0);
      // A negative age means that the clock was set back, so the real age is unknown.
      if (!isClosing && age >= 0 && age < PRECISION_MS) return;
      slots.take(slot);
      if (isUsedAgain[slot]) writer.add(slot);
      else slots.delete(slot);
    }
  }

  return {
    addDue,
    record(id: string): void {
      if (isClosing) return;
      const isKnown = slots.find(id) !== undefined;
      if (!isKnown && slots.count() - slots.total() >= MAX_WAITING) return;
      const slot = slots.add(id);
      usedAt[slot] = clock();
      isUsedAgain[slot] = true;
      if (!isKnown) writer.add(slot);
    },
    flush(): Promise<void> {
      addDue();
      return writer.flush();
    },
    async close(): Promise<void> {
      isClosing = true;
      await writer.flush();
      addDue();
      await writer.close();
    },
  };
}
