/** What was looked up, remembered for as long as the database tells of changes. */
import type { Clock } from '../clock.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';

const MOST_REMEMBERED = 10_000;
/**
 * Milliseconds. Not everything that changes is told: a database that was restored from a backup
 * under running nodes says nothing.
 */
const LONGEST_REMEMBERED = 60_000;

export interface Memory<Value> {
  /**
   * The remembered value, or else the one that `read` answers. That there is none (`undefined`) is
   * remembered where the topic tells of new ones, and of few keys: anybody can ask for another.
   */
  find(key: string, read: () => Promise<Value>): Promise<Value>;
  /** For who changed it, and answers sooner than the database tells. */
  forget(key: string): void;
}

/**
 * Remembers promises, not values. So a crowd that asks for one thing asks the database once, and a
 * read that began before a change can never be remembered after it: forgetting drops reads under
 * way as well, and a read is remembered only at its beginning.
 *
 * @param topic whose changes end what is remembered, by key; `everything` always does.
 * @param mostMissing of how many keys it is remembered that there is nothing.
 */
export function createMemory<Value>({
  changes,
  clock,
  topic,
  mostMissing = 0,
}: {
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly topic: ChangeTopic;
  readonly mostMissing?: number;
}): Memory<Value> {
  type Reads = Map<string, { readonly answer: Promise<Value>; readonly since: number }>;
  const reads: Reads = new Map();
  /** Apart, so that keys of nobody drive out none of somebody's. */
  const missing: Reads = new Map();

  function forget(key?: string): void {
    for (const known of [reads, missing]) {
      if (key === undefined) known.clear();
      else known.delete(key);
    }
  }

  changes.onChange((changed, key) => {
    if (changed === 'everything') forget();
    else if (changed === topic) forget(key);
  });

  function remembered(key: string): Promise<Value> | undefined {
    const read = reads.get(key) ?? missing.get(key);
    const age = read ? clock() - read.since : Number.NaN;
    // A clock that was set back tells no age.
    return age >= 0 && age < LONGEST_REMEMBERED ? read?.answer : undefined;
  }

  return {
    forget(key) {
      forget(key);
      // Whoever remembers something that follows from it.
      changes.tell(topic, key);
    },

    find(key, read) {
      if (!changes.isLive) {
        forget();
        return read();
      }
      const known = remembered(key);
      if (known) return known;
      const begun = { answer: read(), since: clock() };
      forget(key);
      keep(reads, MOST_REMEMBERED, key, begun);
      /** @returns whether nothing has changed since it was begun. */
      const drop = () => reads.get(key) === begun && reads.delete(key);
      // Nobody may fill the memory with keys that do not exist, and a failure is not an answer.
      begun.answer.then((value) => {
        if (value === undefined && drop()) keep(missing, mostMissing, key, begun);
      }, drop);
      return begun.answer;
    },
  };
}

/** At the end of the row: the one that was read longest ago goes first. */
function keep<Value>(known: Map<string, Value>, most: number, key: string, value: Value): void {
  known.set(key, value);
  if (known.size > most) known.delete(known.keys().next().value ?? '');
}
