/** When a secret, an API key or a connection was last used, written in the background. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createBackgroundWriter } from './background-writer.ts';

export interface Use {
  readonly id: string;
  readonly at: Date;
}

/** Keeps when things of one kind were last used; a later time that is there already stays. */
export type WriteUses = (uses: readonly Use[]) => Promise<void>;

export type LastUsed<Kind extends string> = ReturnType<typeof createLastUsed<Kind>>;

interface KindUse<Kind> {
  readonly kind: Kind;
  readonly id: string;
  readonly at: number;
}

/** Milliseconds: a thing is written at its first use, then at most once in this time. */
const PRECISION = 5 * 60_000;
/** Milliseconds from a use to the write of all that are due. */
const PAUSE = 5_000;
const BATCH = 500;
/** The uses of further things are dropped until the next write. */
const MAX_WAITING = 100_000;

const keyOf = ({ kind, id }: KindUse<string>): string => `${kind} ${id}`;

/**
 * Remembers uses in memory and writes them a few seconds later, in batches. What could not be written
 * is tried again.
 *
 * @param writers one per kind of thing, over its own table.
 */
export function createLastUsed<Kind extends string>({
  clock,
  log,
  writers,
}: {
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly writers: Readonly<Record<Kind, WriteUses>>;
}) {
  /** When each thing was last written, for as long as that keeps it from being written again. */
  const written = new Map<string, number>();
  let isClosing = false;

  /** @returns the uses that are not due yet or could not be written. */
  async function writeDue(uses: readonly KindUse<Kind>[]): Promise<readonly KindUse<Kind>[]> {
    const now = clock();
    for (const [key, at] of written) if (now - at >= PRECISION) written.delete(key);
    const left = new Set(uses);
    for (const [kind, write] of Object.entries<WriteUses>(writers)) {
      const ofKind = uses.filter((use) => use.kind === kind);
      const due = ofKind.filter((use) => isClosing || !written.has(keyOf(use)));
      // In one order on every node, so that two that write the same rows do not wait for each other.
      due.sort((a, b) => (a.id < b.id ? -1 : 1));
      try {
        for (let start = 0; start < due.length; start += BATCH) {
          const batch = due.slice(start, start + BATCH);
          await write(batch.map(({ id, at }) => ({ id, at: new Date(at) })));
          for (const use of batch) {
            written.set(keyOf(use), now);
            left.delete(use);
          }
        }
      } catch (err) {
        log.warn({ err, kind }, 'when it was last used could not be written');
      }
    }
    return [...left];
  }

  const writer = createBackgroundWriter({
    pauseMs: PAUSE,
    maxWaiting: MAX_WAITING,
    keyOf,
    write: writeDue,
  });

  return {
    /** For the request's path: remembers the use and does nothing else. */
    note(kind: Kind, id: string): void {
      if (!isClosing) writer.add({ kind, id, at: clock() });
    },
    /** Writes what is due now. */
    flush: writer.flush,
    /** Writes everything that was noted, and stops. */
    close(): Promise<void> {
      isClosing = true;
      return writer.close();
    },
  };
}
