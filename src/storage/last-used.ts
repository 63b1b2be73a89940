/** Records when a secret, an API key or a connection was last used; writes it in the background. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createBackgroundWriter } from './background-writer.ts';

export interface Use {
  readonly id: string;
  readonly at: Date;
}

/** Stores when secrets, keys or connections were last used; never replaces a later time. */
export type WriteUses = (uses: readonly Use[]) => Promise<void>;

export type LastUsed<Kind extends string> = ReturnType<typeof createLastUsed<Kind>>;

interface KindUse<Kind> {
  readonly kind: Kind;
  readonly id: string;
  readonly at: number;
}

/** The first use is written, then at most one use in this many milliseconds. */
const PRECISION_MS = 5 * 60_000;
/** The pause between the first new use and the write of all uses that are due. */
const PAUSE_MS = 5_000;
const BATCH = 500;
/** Maximum number of uses in memory; further ones are dropped until the next write. */
const MAX_WAITING = 100_000;

const keyOf = ({ kind, id }: KindUse<string>): string => `${kind} ${id}`;

/**
 * Collects uses in memory and writes them a few seconds later, in batches. Retries failures.
 *
 * @param writers one writer for each kind (secret, API key, …), because each has its own table.
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
  /** When the use of each id was last written; entries are deleted after `PRECISION_MS`. */
  const written = new Map<string, number>();
  let isClosing = false;

  /** Returns the uses that are not due yet or could not be written. */
  async function writeDue(uses: readonly KindUse<Kind>[]): Promise<readonly KindUse<Kind>[]> {
    const now = clock();
    for (const [key, at] of written) if (now - at >= PRECISION_MS) written.delete(key);
    const left = new Set(uses);
    for (const [kind, write] of Object.entries<WriteUses>(writers)) {
      const ofKind = uses.filter((use) => use.kind === kind);
      const due = ofKind.filter((use) => isClosing || !written.has(keyOf(use)));
      // Use the same order on every node: two nodes that write the same rows must not deadlock.
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
        log.warn({ err, kind }, 'the time of the last use could not be written');
      }
    }
    return [...left];
  }

  const writer = createBackgroundWriter({
    pauseMs: PAUSE_MS,
    maxWaiting: MAX_WAITING,
    keyOf,
    write: writeDue,
  });

  return {
    /** Only stores the use in memory, so it never delays a request. */
    record(kind: Kind, id: string): void {
      if (!isClosing) writer.add({ kind, id, at: clock() });
    },
    flush: writer.flush,
    /** Writes all uses, due or not, and stops. */
    close(): Promise<void> {
      isClosing = true;
      return writer.close();
    },
  };
}
