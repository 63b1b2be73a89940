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
  /** The remembered value, or else the one that `read` answers. `undefined` is not remembered. */
  find(key: string, read: () => Promise<Value>): Promise<Value>;
  forget(key: string): void;
}

/**
 * Remembers promises, not values. So a crowd that asks for one thing asks the database once, and a
 * read that began before a change can never be remembered after it: forgetting drops reads under
 * way as well, and a read is remembered only at its beginning.
 *
 * @param topic whose changes end what is remembered, by key; `everything` always does.
 */
export function createMemory<Value>({
  changes,
  clock,
  topic,
}: {
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly topic: ChangeTopic;
}): Memory<Value> {
  const reads = new Map<string, { readonly answer: Promise<Value>; readonly since: number }>();

  changes.onChange((changed, key) => {
    if (changed === 'everything' || (changed === topic && key === undefined)) reads.clear();
    else if (changed === topic && key !== undefined) reads.delete(key);
  });

  function remembered(key: string): Promise<Value> | undefined {
    const read = reads.get(key);
    const age = read ? clock() - read.since : Number.NaN;
    // A clock that was set back tells no age.
    return age >= 0 && age < LONGEST_REMEMBERED ? read?.answer : undefined;
  }

  return {
    forget: (key) => void reads.delete(key),

    find(key, read) {
      if (!changes.isLive) {
        reads.clear();
        return read();
      }
      const known = remembered(key);
      if (known) return known;
      const begun = { answer: read(), since: clock() };
      // At the end of the row again: the one that was read longest ago goes first.
      reads.delete(key);
      if (reads.size >= MOST_REMEMBERED) reads.delete(reads.keys().next().value ?? '');
      reads.set(key, begun);
      const drop = () => {
        if (reads.get(key) === begun) reads.delete(key);
      };
      // Nobody may fill the memory with keys that do not exist, and a failure is not an answer.
      begun.answer.then((value) => value === undefined && drop(), drop);
      return begun.answer;
    },
  };
}
