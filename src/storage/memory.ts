/** What was looked up, remembered for as long as the database tells of changes. */
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';

const MOST_REMEMBERED = 10_000;

export interface Memory<Value> {
  /** The remembered value, or else the one that `read` answers. `undefined` is not remembered. */
  find(key: string, read: () => Promise<Value>): Promise<Value>;
  forget(): void;
}

/**
 * Remembers promises, not values. So a crowd that asks for one thing asks the database once, and a
 * read that began before a change can never be remembered after it: forgetting drops reads under
 * way as well, and a read is remembered only at its beginning.
 *
 * @param topics whose changes end what is remembered; `everything` always does.
 */
export function createMemory<Value>(
  changes: ChangeFeed,
  topics: readonly ChangeTopic[],
): Memory<Value> {
  const reads = new Map<string, Promise<Value>>();

  const forget = () => reads.clear();
  changes.onChange((topic) => {
    if (topic === 'everything' || topics.includes(topic)) forget();
  });

  return {
    forget,

    find(key, read) {
      if (!changes.isLive) {
        forget();
        return read();
      }
      const remembered = reads.get(key);
      if (remembered) return remembered;
      const begun = read();
      if (reads.size >= MOST_REMEMBERED) reads.delete(reads.keys().next().value ?? '');
      reads.set(key, begun);
      const drop = () => {
        if (reads.get(key) === begun) reads.delete(key);
      };
      // Nobody may fill the memory with keys that do not exist, and a failure is not an answer.
      begun.then((value) => value === undefined && drop(), drop);
      return begun;
    },
  };
}
