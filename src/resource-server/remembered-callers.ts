/** Good answers of the service, remembered until it says that they are no longer true. */
import { isDeepStrictEqual } from 'node:util';
import type { Caller, CallerFields } from './caller.ts';

/** Milliseconds. So that what was last used is known to the hour, and no API key is kept for ever. */
const LONGEST = 3_600_000;
/**
 * Milliseconds. Another node of the service, which answers, may hear of a change by so much later
 * than the one that told of it: till then what it answers is not used again.
 */
const SETTLING = 5_000;
/** Names of what changed within that time, as of a large import; with more of them everything has. */
const MOST_CHANGES = 100_000;
/** Milliseconds, 24.8 days. A timer of Node that is to wait longer fires at once. */
const MAX_TIMER_DELAY = 2 ** 31 - 1;

/** The moment of a question or a change. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** How many changes were heard until then. It orders moments; the clock may be put back. */
  readonly changes: number;
}

/** @param most further ones take the place of those that were asked about longest ago. */
export function createRememberedCallers(parts: {
  readonly most: number;
  readonly clock: () => number;
}) {
  const { most, clock } = parts;
  const remembered = new Map<string, Remembered>();
  /** By each id that an answer names. Most name one caller only, who needs no set. */
  const named = new Map<string, Remembered | Set<Remembered>>();
  /** The latest change of each name, the earliest first. */
  const changed = new Map<string, Moment>();
  let changes = 0;
  /** The latest change that may be about any answer: `everything`, or one whose name was dropped. */
  let unnamed: Moment = { at: clock(), changes };

  function remove(entry: Remembered): void {
    remembered.delete(entry.token);
    for (const name of namesOf(entry.caller)) {
      const found = named.get(name);
      if (found instanceof Set) found.delete(entry);
      if (found === entry || (found instanceof Set && found.size === 0)) named.delete(name);
    }
    entry.caller.end();
  }

  function drop(token: string): void {
    const entry = remembered.get(token);
    if (entry) remove(entry);
  }

  function add(entry: Remembered): void {
    remembered.set(entry.token, entry);
    for (const name of namesOf(entry.caller)) {
      const found = named.get(name);
      if (found instanceof Set) found.add(entry);
      else named.set(name, found ? new Set([found, entry]) : entry);
    }
  }

  /** Not copied: most who ask want the first, of as many as a client has tokens. */
  const entriesOf = (name: string): Iterable<Remembered> => {
    const found = named.get(name);
    if (found === undefined) return [];
    return found instanceof Set ? found : [found];
  };

  /** The latest change of what the answer names. */
  function lastChange(caller: KnownCaller): Moment {
    let last = unnamed;
    if (changed.size === 0) return last;
    for (const name of namesOf(caller)) {
      const change = changed.get(name);
      if (change && change.changes > last.changes) last = change;
    }
    return last;
  }

  function forgetAll(): void {
    changes += 1;
    unnamed = { at: clock(), changes };
    changed.clear();
    const all = [...remembered.values()];
    remembered.clear();
    named.clear();
    for (const { caller } of all) caller.end();
  }

  function recordChange(name: string): void {
    const at = clock();
    changes += 1;
    changed.delete(name);
    changed.set(name, { at, changes });
    for (const [other, change] of changed) {
      if (change.at > at - SETTLING && change.at <= at) break;
      changed.delete(other);
      // An answer that was asked for before it may still come.
      unnamed = { at: Math.min(change.at, at), changes: change.changes };
    }
  }

  return {
    /** Who need not be asked about. */
    find(token: string): Caller | undefined {
      const entry = remembered.get(token);
      if (!entry) return undefined;
      const now = clock();
      // A clock that was put back must not make the time longer.
      return entry.since <= now && now < entry.until ? entry.caller : undefined;
    },

    /** The present moment, for a question that is asked now. */
    now: (): Moment => ({ at: clock(), changes }),

    /**
     * Keeps a good answer. The same answer as before is the same caller.
     *
     * @param asked when it was asked for, from `now`.
     */
    keep(token: string, fields: CallerFields, asked: Moment): Caller {
      const before = remembered.get(token);
      const isSame = before?.caller.isSame(fields) === true;
      const caller = isSame ? before.caller : knownCaller(fields, clock, () => drop(token));
      const change = lastChange(caller);
      // What changed after the question may be missing in the answer.
      const isOutdated = asked.changes < change.changes;
      if (before && (!isSame || isOutdated)) remove(before);
      if (isOutdated) {
        caller.end();
        return caller;
      }
      // The callers of one account share what is the largest part of them.
      const [first] = isSame ? [] : entriesOf(caller.subject);
      if (first && isDeepStrictEqual(first.caller.organizations, caller.organizations)) {
        caller.organizations = first.caller.organizations;
      }
      const settled = change.at + SETTLING;
      const isSettled = asked.at >= settled;
      caller.isVouchedFor(isSettled ? undefined : settled);
      const expiry = caller.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      const until = isSettled ? Math.min(asked.at + LONGEST, expiry) : asked.at;
      const entry = before && isSame ? before : { token, caller, since: 0, until: 0 };
      entry.since = asked.at;
      entry.until = until;
      if (entry === before) return caller;
      const [oldest] = remembered.size >= most ? remembered.values() : [];
      if (oldest) remove(oldest);
      add(entry);
      return caller;
    },

    /** The token is not good any more. */
    drop,

    /** @param what an id, the ids of an account and its client, or `everything`. */
    change(what: string): void {
      if (what === 'everything' || changed.size >= MOST_CHANGES) {
        forgetAll();
        return;
      }
      const [name = '', clientId] = what.split(' ');
      recordChange(name);
      for (const entry of entriesOf(name)) {
        if (clientId === undefined || entry.caller.clientId === clientId) remove(entry);
      }
    },

    /** From now on nothing that was kept is found. */
    forgetAll,
  };
}

interface Remembered {
  readonly token: string;
  readonly caller: KnownCaller & Caller;
  /** By the clock: it may be used again in between. */
  since: number;
  until: number;
}

/** As events name them: account, client, authorization or API key, organizations. */
function namesOf(caller: KnownCaller): string[] {
  const names = caller.organizations.map(({ id }) => id);
  for (const id of [caller.subject, caller.clientId, caller.authorization, caller.apiKey]) {
    if (id !== undefined && !names.includes(id)) names.push(id);
  }
  return names;
}

/** A caller whose access has not ended yet. @param onEnd called once, before its signal fires. */
export const knownCaller = (
  fields: CallerFields,
  clock: () => number,
  onEnd: () => void = () => {},
): KnownCaller & Caller => new KnownCaller(fields, clock, onEnd) as KnownCaller & Caller;

/** A caller with a signal, which is made when somebody asks for it. */
class KnownCaller {
  declare readonly subject: string;
  declare readonly clientId?: string;
  declare readonly authorization?: string;
  declare readonly apiKey?: string;
  declare readonly expiresAt?: Date;
  declare organizations: CallerFields['organizations'];
  readonly #clock: () => number;
  readonly #onEnd: () => void;
  /** `undefined` before the first use of `signal`. */
  #controller: AbortController | undefined;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;
  /** Until then a node may have answered from before a change; undefined once one was asked later. */
  #settles: number | undefined;

  constructor(fields: CallerFields, clock: () => number, onEnd: () => void) {
    Object.assign(this, fields);
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  get signal(): AbortSignal {
    if (this.#hasEnded) return AbortSignal.abort();
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.#endInTime();
    }
    return this.#controller.signal;
  }

  isVouchedFor(settles: number | undefined): void {
    this.#settles = settles;
  }

  isSame(fields: CallerFields): boolean {
    return isDeepStrictEqual({ ...this }, { ...fields });
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // It would keep the caller in memory until the token expires.
    clearTimeout(this.#timer);
    this.#onEnd();
    this.#controller?.abort();
  }

  /** Ends with the token, or when the API must ask again before it goes on. */
  #endInTime(): void {
    const expiry = this.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
    const left = Math.min(expiry, this.#settles ?? expiry) - this.#clock();
    if (left <= 0) this.end();
    else if (left < Number.POSITIVE_INFINITY) {
      const delay = Math.min(left, MAX_TIMER_DELAY);
      this.#timer = setTimeout(() => this.#endInTime(), delay).unref();
    }
  }
}
