/** When a secret, an API key or a connection was last used, written beside the requests that use it. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';

/** One thing was used: its id, and when last. */
export interface Use {
  readonly id: string;
  readonly at: Date;
}

/** Keeps when things of one kind were last used; a later time that is there already stays. */
export type WriteUses = (uses: readonly Use[]) => Promise<void>;

export interface LastUsed<Kind extends string> {
  /** To be called on the request's path: remembers the use and does nothing else. */
  note(kind: Kind, id: string): void;
  /** Writes what is due now. */
  flush(): Promise<void>;
  /** Writes everything that was noted, and stops. */
  close(): Promise<void>;
}

/** Milliseconds: a thing is written at its first use, then at most once in this time. */
const PRECISION = 5 * 60_000;
/** Milliseconds between two looks at what is due. */
const ROUND = 5_000;
/** Uses of one statement. */
const BATCH = 500;
/** Beyond this the use of further things goes unnoted until the next round. */
const MOST_NOTED = 100_000;

/**
 * Things are noted in memory and written a few seconds later, in batches. What could not be written
 * is tried again in the next round.
 */
export function createLastUsed<Kind extends string>(parts: {
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** One per kind of thing, over its own table. */
  readonly writers: Readonly<Record<Kind, WriteUses>>;
}): LastUsed<Kind> {
  const { clock, log } = parts;
  const ledgers = Object.entries<WriteUses>(parts.writers).map(
    ([kind, write]) => [kind, createLedger(write, clock)] as const,
  );
  const byKind = new Map<string, Ledger>(ledgers);

  async function flushAll(options: { everything: boolean }): Promise<void> {
    for (const [kind, ledger] of ledgers) {
      await ledger.flush(options).catch((err: unknown) => {
        log.warn({ err, kind }, 'when it was last used could not be written');
      });
    }
  }

  // One flush after the other: what one is writing, the next does not write again.
  let work = Promise.resolve();
  const flush = (options: { everything: boolean }): Promise<void> => {
    work = work.then(() => flushAll(options));
    return work;
  };
  const timer = setInterval(() => void flush({ everything: false }), ROUND).unref();

  return {
    note: (kind, id) => byKind.get(kind)?.note(id),
    flush: () => flush({ everything: false }),
    close() {
      clearInterval(timer);
      return flush({ everything: true });
    },
  };
}

interface Ledger {
  note(id: string): void;
  flush(options: { everything: boolean }): Promise<void>;
}

function createLedger(write: WriteUses, clock: Clock): Ledger {
  const noted = new Map<string, number>();
  /** When each thing was last written, for as long as that keeps it from being written again. */
  const written = new Map<string, number>();

  return {
    note(id) {
      if (noted.size < MOST_NOTED || noted.has(id)) noted.set(id, clock());
    },

    async flush({ everything }) {
      const now = clock();
      for (const [id, at] of written) if (now - at >= PRECISION) written.delete(id);
      const due = [...noted].filter(([id]) => everything || !written.has(id));
      // In one order on every node, so that two that write the same rows do not wait for each other.
      due.sort(([a], [b]) => (a < b ? -1 : 1));
      for (let start = 0; start < due.length; start += BATCH) {
        const batch = due.slice(start, start + BATCH);
        await write(batch.map(([id, at]) => ({ id, at: new Date(at) })));
        for (const [id, at] of batch) {
          written.set(id, now);
          // Used again meanwhile, it stays noted.
          if (noted.get(id) === at) noted.delete(id);
        }
      }
    },
  };
}
