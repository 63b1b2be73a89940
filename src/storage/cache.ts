/** A cache of database reads, kept correct by the change feed. */
import type { Clock } from '../base/clock.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';
import { createPackedTexts } from './packed-texts.ts';
import { createSlots } from './slots.ts';

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
  /** Call this before a read. The returned function caches the result, unless there was a change or a cached miss. */
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
  /** Returns a whole number; by default, each value has size 1. */
  readonly sizeOf?: (value: Value) => number;
  /** Maximum number of cached misses; by default 0. Set this only if `topics` announce new rows. */
  readonly maxMisses?: number;
  /**
   * Stores the values as text outside V8's heap. With 100,000 values of many small objects each, a garbage collection
   * of V8 would stop the process for longer than a request takes.
   */
  readonly asText?: { pack(value: NonNullable<Value>): string; unpack(text: string): NonNullable<Value> };
}

/** The lists of the slots of a cache. The slots of pending loads are in no list. */
const VALUES = 0;
/** Separate from the values, so that look-ups of keys that do not exist cannot displace values. */
const MISSES = 1;

/** Stands for a value that is not stored as text. */
const NO_TEXT = -1;
/** Marks a free place in `objects`. It is the head of a list, so it is never the slot of a key. */
const NO_SLOT = 0;

/**
 * Caches promises, so that concurrent callers share one database read. A read that began before a change is never
 * served after the change: the key is added when its read starts, and a change also removes keys whose read is in
 * progress.
 */
export function createCache<Value extends Cacheable>(parts: CacheOptions<Value>): Cache<Value> {
  const { changes, clock, topics, within, sizeOf = () => 1, asText } = parts;
  const maxSizes = [parts.maxSize ?? DEFAULT_MAX_SIZE, parts.maxMisses ?? 0];
  const texts = createPackedTexts();
  const slots = createSlots(2);
  /** For each slot the time at which the load of its value began. */
  const startedAt: number[] = [];
  /** For each slot the value of `nameChangeCount` when it was last found to be current. */
  const changesSeen: number[] = [];
  /** For each slot the result of a pending load, or of a load that found no row. */
  let promises: (Promise<Value> | undefined)[] = [];
  /** The value as an object; undefined for a miss, during the load, and if only the text is stored. */
  let values: (NonNullable<Value> | undefined)[] = [];
  /** The number of the value's text in `texts`. */
  let textOf: number[] = [];
  /** The latest slots whose value was made an object of its text. The next one replaces the one at `nextObject`. */
  let objects: number[] = [];
  let nextObject = 0;
  /** `nameChangeCount` at the latest change of each name. Values are compared with it when they are used. */
  const nameChanges = new Map<string, number>();
  let nameChangeCount = 0;
  let changeCount = 0;

  /** Returns the slot of the key, and removes its former value. */
  function begin(key: string, { now, seen }: { readonly now: number; readonly seen: number }): number {
    const slot = slots.add(key);
    empty(slot);
    startedAt[slot] = now;
    changesSeen[slot] = seen;
    return slot;
  }

  /** Removes the value and the pending load of the slot, which stays the slot of its key. */
  function empty(slot: number): void {
    const text = textOf[slot] ?? NO_TEXT;
    if (text !== NO_TEXT) texts.delete(text);
    textOf[slot] = NO_TEXT;
    const place = objects.indexOf(slot);
    if (place >= 0) objects[place] = NO_SLOT;
    promises[slot] = undefined;
    values[slot] = undefined;
    slots.take(slot);
  }

  function removeSlot(slot: number): void {
    empty(slot);
    slots.delete(slot);
  }

  function remove(key: string): void {
    const slot = slots.find(key);
    if (slot !== undefined) removeSlot(slot);
  }

  function clear(): void {
    slots.clear();
    promises = [];
    values = [];
    textOf = [];
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
  function valueIn(slot: number): NonNullable<Value> | undefined {
    const text = textOf[slot] ?? NO_TEXT;
    return values[slot] ?? (asText && text !== NO_TEXT ? asText.unpack(texts.read(text)) : undefined);
  }

  function use(slot: number, value: NonNullable<Value>): void {
    if (values[slot] !== undefined) return;
    values[slot] = value;
    if (!asText) return;
    const former = objects[nextObject];
    if (former !== undefined) values[former] = undefined;
    objects[nextObject] = slot;
    nextObject = (nextObject + 1) % MAX_OBJECTS;
  }

  /**
   * Adds the slot to the list, and removes the oldest slots while the list is too large.
   * @returns false if the slot does not fit, and is removed
   */
  function put(slot: number, list: number, size: number): boolean {
    const max = maxSizes[list] ?? 0;
    // A value that does not fit must not displace all other values.
    if (size > max) {
      removeSlot(slot);
      return false;
    }
    slots.put(slot, list, size);
    while (slots.total(list) > max) removeSlot(slots.oldest(list));
    return true;
  }

  function keep(slot: number, value: NonNullable<Value>): void {
    empty(slot);
    if (!put(slot, VALUES, sizeOf(value))) return;
    if (asText) textOf[slot] = texts.add(asText.pack(value));
    use(slot, value);
  }

  function isCurrent(slot: number): boolean {
    const age = clock() - (startedAt[slot] ?? 0);
    // A negative age means that the clock was set back, so the real age is unknown.
    if (!(age >= 0 && age < MAX_AGE_MS)) return false;
    const seen = changesSeen[slot] ?? 0;
    if (seen === nameChangeCount) return true;
    const value = valueIn(slot);
    // Loads and misses may be older than the latest change, and have no names to compare.
    if (value === undefined) return false;
    const hasChanged = (name: string) => (nameChanges.get(name) ?? 0) > seen;
    if (within?.namesIn(value).some(hasChanged)) return false;
    changesSeen[slot] = nameChangeCount;
    return true;
  }

  return {
    invalidate(topic, change) {
      remove(firstWord(change));
      // Announce the change, because other caches of this node may have values derived from this one.
      changes.announce(topic, change);
    },

    beginRead() {
      const before = changeCount;
      const began = { now: clock(), seen: nameChangeCount };
      return (key, value) => {
        const cached = slots.find(key);
        if (!changes.isLive || changeCount !== before || (cached !== undefined && isCurrent(cached))) return;
        keep(begin(key, began), value);
      };
    },

    get(key, load, isUsable) {
      if (!changes.isLive) {
        clear();
        return load();
      }
      const cached = slots.find(key);
      if (cached !== undefined && isCurrent(cached)) {
        const loading = promises[cached];
        if (loading) return loading;
        const value = valueIn(cached);
        if (value !== undefined && (!isUsable || isUsable(value))) {
          use(cached, value);
          return Promise.resolve(value);
        }
      }
      const seen = nameChangeCount;
      const promise = load();
      const slot = begin(key, { now: clock(), seen });
      promises[slot] = promise;
      // If the key was changed or loaded again during this load, `promises` no longer contains this promise.
      promise.then(
        (value) => {
          if (promises[slot] !== promise) return;
          if (value === undefined) put(slot, MISSES, 1);
          else keep(slot, value);
        },
        // Do not cache failures.
        () => promises[slot] === promise && removeSlot(slot),
      );
      return promise;
    },
  };
}

const firstWord = (change: string): string => change.split(' ', 1)[0] ?? '';
