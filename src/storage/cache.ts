/** A cache of database reads, kept correct by the change feed. */
import { type Clock, epochSeconds } from '../base/clock.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';
import { createPackedTexts } from './packed-texts.ts';

const DEFAULT_MAX_SIZE = 10_000;
/**
 * The maximum age of a value. Not every change is announced: a database that is restored from a backup while nodes run
 * announces nothing.
 */
const MAX_AGE_MS = 60_000;
/**
 * How many values a cache of texts also stores as objects. These are few, so that V8 can free them while they are
 * young: a collection of old objects takes much longer.
 */
const MAX_OBJECTS = 32;
/** A full cache removes a hundredth of its values at once. */
const EVICTED_AT_ONCE = 100;
/** If more names than this have changed, the whole cache is cleared. */
const MAX_CHANGED_NAMES = 10_000;

/** `undefined` stands for a row that does not exist (a miss). */
type Cacheable = object | string | undefined;

export interface Cache<Value extends Cacheable> {
  /**
   * Returns the cached value, or the result of `load`, which is then cached. Concurrent calls for a key share one
   * `load`.
   * @param isUsable if it returns false for the cached value, the value is loaded again. Not called for a miss.
   */
  get(key: string, load: () => Promise<Value>, isUsable?: (value: NonNullable<Value>) => boolean): Promise<Value>;
  /** Call this before a read. The returned function caches the result of the read if nothing has changed since. */
  beginRead(): (key: string, value: NonNullable<Value>) => void;
  /**
   * Removes a value that this node has just changed, before the database announces the change.
   * @param change as in the change feed. Its first word is the cache key.
   */
  invalidate(topic: ChangeTopic, change: string): void;
}

export interface CacheOptions<Value extends Cacheable> {
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /**
   * Topics of the changes that remove a value. The change begins with the key of the value; `everything` clears the
   * cache.
   */
  readonly topics: readonly ChangeTopic[];
  /** A change of this topic removes every value that contains the changed name. */
  readonly within?: { readonly topic: ChangeTopic; readonly namesIn: (value: Value) => string[] };
  /** Maximum total size. The values that were loaded longest ago are removed first, because they expire first. */
  readonly maxSize?: number;
  /** By default, each value has size 1. */
  readonly sizeOf?: (value: Value) => number;
  /** Maximum number of cached misses; by default 0. Set this only if `topics` announce new rows. */
  readonly maxMisses?: number;
  /**
   * Stores the values as text outside V8's heap. With 100,000 values of many small objects each, a garbage collection
   * of V8 would stop the process for longer than a request takes.
   */
  readonly asText?: { pack(value: NonNullable<Value>): string; unpack(text: string): NonNullable<Value> };
}

interface Entry<Value extends Cacheable> {
  /** Undefined once the value is stored: if every value kept a promise, there would be too many objects. */
  promise: Promise<Value> | undefined;
  /** In seconds since the epoch: V8 stores a number above 2^31, such as milliseconds, as an object. */
  readonly startedAt: number;
  /** The value of `nameChangeCount` when this entry was last found to be current. */
  changesSeen: number;
  /** The value as an object; undefined for a miss, during the load, and if only the text is stored. */
  value: NonNullable<Value> | undefined;
  /** The number of the value's text in `texts`. */
  text: number | undefined;
  /** The size of the value; 0 while it is loading. */
  size: number;
}

/**
 * Caches promises, so that concurrent callers share one database read. A read that began before a change is never
 * served after the change: the entry is added when its read starts, and a change also removes entries whose read is in
 * progress.
 */
export function createCache<Value extends Cacheable>(parts: CacheOptions<Value>): Cache<Value> {
  const { changes, clock, topics, within, sizeOf = () => 1, asText } = parts;
  const texts = createPackedTexts();
  const entries = createSizedMap<Value>(parts.maxSize ?? DEFAULT_MAX_SIZE, (entry) => {
    if (entry.text !== undefined) texts.delete(entry.text);
    entry.text = undefined;
  });
  /** Separate from the values, so that look-ups of keys that do not exist cannot displace values. */
  const misses = createSizedMap<Value>(parts.maxMisses ?? 0);
  /** The latest entries whose value was made an object of its text. The next one replaces the one at `nextObject`. */
  let objects: Entry<Value>[] = [];
  let nextObject = 0;
  /** `nameChangeCount` at the latest change of each name. Entries are compared with it when they are used. */
  const nameChanges = new Map<string, number>();
  let nameChangeCount = 0;
  let changeCount = 0;

  function remove(key: string): void {
    entries.delete(key);
    misses.delete(key);
  }

  function clear(): void {
    entries.clear();
    misses.clear();
    objects = [];
    texts.clear();
    nameChanges.clear();
  }

  function recordNameChange(name: string): void {
    nameChangeCount += 1;
    nameChanges.set(name, nameChangeCount);
    if (nameChanges.size > MAX_CHANGED_NAMES) clear();
  }

  changes.onChange((topic, change) => {
    changeCount += 1;
    if (topic === 'everything') clear();
    else if (topics.includes(topic)) remove(firstWord(change));
    else if (topic === within?.topic) recordNameChange(change);
  });

  /** @returns undefined for a miss, and during the load */
  const valueIn = ({ value, text }: Entry<Value>): NonNullable<Value> | undefined =>
    value === undefined && asText && text !== undefined ? asText.unpack(texts.read(text)) : value;

  function use(entry: Entry<Value>, value: NonNullable<Value>): void {
    if (entry.value !== undefined) return;
    entry.value = value;
    if (!asText) return;
    const former = objects[nextObject];
    if (former) former.value = undefined;
    objects[nextObject] = entry;
    nextObject = (nextObject + 1) % MAX_OBJECTS;
  }

  function keep(key: string, entry: Entry<Value>, value: NonNullable<Value>): void {
    entries.delete(key);
    entry.size = sizeOf(value);
    entry.promise = undefined;
    if (asText) entry.text = texts.add(asText.pack(value));
    entries.set(key, entry);
    use(entry, value);
  }

  function isCurrent(entry: Entry<Value>): boolean {
    const age = clock() - entry.startedAt * 1000;
    // A negative age means that the clock was set back, so the real age is unknown.
    if (!(age >= 0 && age < MAX_AGE_MS)) return false;
    if (entry.changesSeen === nameChangeCount) return true;
    const value = valueIn(entry);
    // Loads and misses may be older than the latest change, and have no names to compare.
    if (value === undefined) return false;
    const hasChanged = (name: string) => (nameChanges.get(name) ?? 0) > entry.changesSeen;
    if (within?.namesIn(value).some(hasChanged)) return false;
    entry.changesSeen = nameChangeCount;
    return true;
  }

  return {
    invalidate(topic, change) {
      remove(firstWord(change));
      // Announce the change, because other caches of this node may have values derived from this one.
      changes.announce(topic, change);
    },

    beginRead() {
      const seen = changeCount;
      const began = { startedAt: epochSeconds(clock), changesSeen: nameChangeCount };
      return (key, value) => {
        const cached = entries.get(key);
        if (!changes.isLive || changeCount !== seen || (cached && isCurrent(cached))) return;
        keep(key, { ...began, promise: undefined, value: undefined, text: undefined, size: 0 }, value);
      };
    },

    get(key, load, isUsable) {
      if (!changes.isLive) {
        clear();
        return load();
      }
      const cached = entries.get(key) ?? misses.get(key);
      if (cached && isCurrent(cached)) {
        if (cached.promise) return cached.promise;
        const value = valueIn(cached);
        if (value !== undefined && (!isUsable || isUsable(value))) {
          use(cached, value);
          return Promise.resolve(value);
        }
      }
      const changesSeen = nameChangeCount;
      const promise = load();
      const startedAt = epochSeconds(clock);
      const started: Entry<Value> = { promise, startedAt, changesSeen, value: undefined, text: undefined, size: 0 };
      remove(key);
      entries.set(key, started);
      promise.then(
        (value) => {
          // The entry was removed during the load.
          if (entries.get(key) !== started) return;
          if (value !== undefined) return keep(key, started, value);
          entries.delete(key);
          started.size = 1;
          misses.set(key, started);
        },
        // Do not cache failures.
        () => entries.get(key) === started && entries.delete(key),
      );
      return promise;
    },
  };
}

const firstWord = (change: string): string => change.split(' ', 1)[0] ?? '';

/** A map of limited total size that removes the oldest entries first. @param removed gets each removed entry */
function createSizedMap<Value extends Cacheable>(maxSize: number, removed: (entry: Entry<Value>) => void = () => {}) {
  const entries = new Map<string, Entry<Value>>();
  const spare = Math.floor(maxSize / EVICTED_AT_ONCE);
  let size = 0;

  function remove(key: string): void {
    const entry = entries.get(key);
    if (!entry) return;
    size -= entry.size;
    entries.delete(key);
    removed(entry);
  }

  return {
    get: (key: string) => entries.get(key),
    delete: remove,
    clear() {
      entries.clear();
      size = 0;
    },
    set(key: string, entry: Entry<Value>): void {
      remove(key);
      // A value that does not fit must not displace all other values.
      if (entry.size > maxSize) {
        removed(entry);
        return;
      }
      entries.set(key, entry);
      size += entry.size;
      if (size <= maxSize) return;
      // Remove many entries at once: each iteration first skips all deleted entries, which can be as many as the rest.
      for (const oldest of entries.keys()) {
        if (size <= maxSize - spare || oldest === key) break;
        remove(oldest);
      }
    },
  };
}
