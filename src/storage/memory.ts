/** What was looked up, remembered for as long as the database tells of changes. */
import type { Clock } from '../base/clock.ts';
import type { ChangeFeed, ChangeTopic } from './change-feed.ts';

const MOST_REMEMBERED = 10_000;
/**
 * Milliseconds. Not everything that changes is told: a database that was restored from a backup
 * under running nodes says nothing.
 */
const LONGEST_REMEMBERED = 60_000;
/** Names of what changed in many values; with more of them everything has. */
const MOST_NAMES = 10_000;

type Known = object | string | undefined;

export interface Memory<Value extends Known> {
  /**
   * The remembered value, or else the one that `read` answers. That there is none (`undefined`) is
   * remembered where the topic tells of new ones, and of few keys: anybody can ask for another.
   *
   * @param isGood of a remembered value that is there; otherwise it is read again.
   */
  find(
    key: string,
    read: () => Promise<Value>,
    isGood?: (value: NonNullable<Value>) => boolean,
  ): Promise<Value>;
  /**
   * For who changed it, and answers sooner than the database tells.
   *
   * @param what the key, or a text that begins with it: as it is told.
   */
  forget(topic: ChangeTopic, what: string): void;
}

export interface MemoryParts<Value extends Known> {
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Whose changes end what is remembered, by the first word of what they name; `everything` always does. */
  readonly topics: readonly ChangeTopic[];
  /** A topic whose changes end every value in which the name occurs. */
  readonly within?: { readonly topic: ChangeTopic; readonly namesIn: (value: Value) => string[] };
  /** How many are remembered. Those that were asked for longest ago go first. */
  readonly most?: number;
  /** As how many a value counts; 1 unless given. */
  readonly sizeOf?: (value: Value) => number;
  /** Of how many keys it is remembered that there is nothing. */
  readonly mostMissing?: number;
}

interface Read<Value extends Known> {
  readonly answer: Promise<Value>;
  /** By the clock. */
  readonly since: number;
  /** All names that were told by then are in it. */
  asOf: number;
  value?: Value;
  /** Nothing while it is under way. */
  size: number;
}

/**
 * Remembers promises, not values. So a crowd that asks for one thing asks the database once, and a
 * read that began before a change can never be remembered after it: forgetting drops reads under
 * way as well, and a read is remembered only at its beginning.
 */
export function createMemory<Value extends Known>(parts: MemoryParts<Value>): Memory<Value> {
  const { changes, clock, topics, within, sizeOf = () => 1 } = parts;
  const reads = createShelf<Value>(parts.most ?? MOST_REMEMBERED);
  /** Apart, so that keys of nobody drive out none of somebody's. */
  const missing = createShelf<Value>(parts.mostMissing ?? 0);
  /** What was told of `within`, and as the how manieth: no value needs to be searched for it. */
  const names = new Map<string, number>();
  let told = 0;

  function forget(key: string): void {
    reads.remove(key);
    missing.remove(key);
  }

  function forgetAll(): void {
    reads.clear();
    missing.clear();
    names.clear();
  }

  function noteName(name: string): void {
    told += 1;
    names.set(name, told);
    if (names.size > MOST_NAMES) forgetAll();
  }

  changes.onChange((topic, what) => {
    if (topic === 'everything') forgetAll();
    else if (topics.includes(topic)) forget(firstWord(what));
    else if (topic === within?.topic) noteName(what);
  });

  function isTrue(read: Read<Value>): boolean {
    const age = clock() - read.since;
    // A clock that was set back tells no age.
    if (!(age >= 0 && age < LONGEST_REMEMBERED)) return false;
    if (read.asOf === told) return true;
    // What it will answer is not known: it may be from before.
    if (read.value === undefined) return false;
    if (within?.namesIn(read.value).some((name) => (names.get(name) ?? 0) > read.asOf))
      return false;
    read.asOf = told;
    return true;
  }

  return {
    forget(topic, what) {
      forget(firstWord(what));
      // Whoever remembers something that follows from it.
      changes.tell(topic, what);
    },

    find(key, read, isGood) {
      if (!changes.isLive) {
        forgetAll();
        return read();
      }
      const known = reads.find(key) ?? missing.find(key);
      if (known && isTrue(known)) {
        if (known.value === undefined) return known.answer;
        if (!isGood || isGood(known.value)) {
          reads.keep(key, known);
          return known.answer;
        }
      }
      const begun: Read<Value> = { answer: read(), since: clock(), asOf: told, size: 0 };
      forget(key);
      reads.keep(key, begun);
      begun.answer.then(
        (value) => {
          if (reads.find(key) !== begun) return;
          reads.remove(key);
          begun.size = value === undefined ? 1 : sizeOf(value);
          // Nobody may fill the memory with keys that do not exist.
          if (value === undefined) missing.keep(key, begun);
          else {
            begun.value = value;
            reads.keep(key, begun);
          }
        },
        // A failure is not an answer.
        () => reads.find(key) === begun && reads.remove(key),
      );
      return begun.answer;
    },
  };
}

const firstWord = (what: string): string => what.split(' ', 1)[0] ?? '';

/** At most `most` in all: the one that was kept longest ago goes first. */
function createShelf<Value extends Known>(most: number) {
  const reads = new Map<string, Read<Value>>();
  let taken = 0;

  function remove(key: string): void {
    taken -= reads.get(key)?.size ?? 0;
    reads.delete(key);
  }

  return {
    find: (key: string) => reads.get(key),
    remove,
    clear() {
      reads.clear();
      taken = 0;
    },
    /** Puts it at the end of the row, also where it stands there already. */
    keep(key: string, read: Read<Value>): void {
      remove(key);
      // For one that is larger than all nobody else is forgotten.
      if (read.size > most) return;
      reads.set(key, read);
      taken += read.size;
      for (const oldest of reads.keys()) {
        if (taken <= most) break;
        remove(oldest);
      }
    },
  };
}
