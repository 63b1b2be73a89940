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
/** Milliseconds. A timer waits no longer. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** @param most further ones take the place of those that were asked about longest ago. */
export function createRememberedCallers(parts: {
  readonly most: number;
  readonly clock: () => number;
}) {
  const { most, clock } = parts;
  const remembered = new Map<string, Remembered>();
  /** By each id that an answer names. Most name one caller only, who needs no set. */
  const named = new Map<string, Remembered | Set<Remembered>>();
  const changedAt = new Map<string, number>();
  let everythingAt = clock();

  function remove(entry: Remembered): void {
    remembered.delete(entry.token);
    for (const name of namesOf(entry.caller)) {
      const found = named.get(name);
      if (found instanceof Set) found.delete(entry);
      if (found === entry || (found instanceof Set && found.size === 0)) named.delete(name);
    }
    entry.caller.end();
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

  /** When the last change of what the answer names was told. */
  function lastChange(caller: KnownCaller): number {
    if (changedAt.size === 0) return everythingAt;
    return Math.max(everythingAt, ...namesOf(caller).map((name) => changedAt.get(name) ?? 0));
  }

  function forgetAll(): void {
    everythingAt = clock();
    changedAt.clear();
    const all = [...remembered.values()];
    remembered.clear();
    named.clear();
    for (const { caller } of all) caller.end();
  }

  function noteChange(name: string): void {
    const now = clock();
    changedAt.delete(name);
    changedAt.set(name, now);
    for (const [other, at] of changedAt) {
      if (at > now - SETTLING && at <= now) break;
      changedAt.delete(other);
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

    /**
     * Keeps a good answer. The same answer as before is the same caller.
     *
     * @param askedAt when it was asked for, by the clock.
     */
    keep(token: string, fields: CallerFields, askedAt: number): Caller {
      const before = remembered.get(token);
      const isSame = before?.caller.isSame(fields) === true;
      const caller = isSame ? before.caller : knownCaller(fields, clock);
      const changed = lastChange(caller);
      if (before && (!isSame || askedAt < changed)) remove(before);
      if (askedAt < changed) {
        // What was told meanwhile may be about this answer.
        caller.end();
        return caller;
      }
      // The callers of one account share what is the largest part of them.
      const [first] = isSame ? [] : entriesOf(caller.subject);
      if (first && isDeepStrictEqual(first.caller.organizations, caller.organizations)) {
        caller.organizations = first.caller.organizations;
      }
      const settled = changed + SETTLING;
      const isSettled = askedAt >= settled;
      caller.isVouchedFor(isSettled ? undefined : settled);
      const expiry = caller.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      const until = isSettled ? Math.min(askedAt + LONGEST, expiry) : askedAt;
      const entry = before && isSame ? before : { token, caller, since: 0, until: 0 };
      entry.since = askedAt;
      entry.until = until;
      if (entry === before) return caller;
      const [oldest] = remembered.size >= most ? remembered.values() : [];
      if (oldest) remove(oldest);
      add(entry);
      return caller;
    },

    /** The token is not good any more. */
    drop(token: string): void {
      const entry = remembered.get(token);
      if (entry) remove(entry);
    },

    /** @param what an id, the ids of an account and its client, or `everything`. */
    change(what: string): void {
      if (what === 'everything' || changedAt.size >= MOST_CHANGES) {
        forgetAll();
        return;
      }
      const [name = '', clientId] = what.split(' ');
      noteChange(name);
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

/** A caller whose access has not ended yet. */
export const knownCaller = (fields: CallerFields, clock: () => number): KnownCaller & Caller =>
  new KnownCaller(fields, clock) as KnownCaller & Caller;

/** A caller with a signal, which is made when somebody asks for it. */
class KnownCaller {
  declare readonly subject: string;
  declare readonly clientId?: string;
  declare readonly authorization?: string;
  declare readonly apiKey?: string;
  declare readonly expiresAt?: Date;
  declare organizations: CallerFields['organizations'];
  readonly #clock: () => number;
  /** `undefined` before anybody asked. */
  #controller: AbortController | undefined;
  #hasEnded = false;
  /** They would hold it in memory until the token expires. */
  readonly #timers: NodeJS.Timeout[] = [];
  /** Until then a node may have answered from before a change; nobody has asked later yet. */
  #settles: number | undefined;

  constructor(fields: CallerFields, clock: () => number) {
    Object.assign(this, fields);
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    if (this.#hasEnded) return AbortSignal.abort();
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.expiresAt) this.#at(this.expiresAt.getTime(), () => this.end());
      // Whoever goes on without asking again must come again.
      if (this.#settles) this.#at(this.#settles, () => this.#settles && this.end());
    }
    return this.#controller.signal;
  }

  isVouchedFor(settles: number | undefined): void {
    this.#settles = settles;
  }

  /** One that has ended is nobody's any more. */
  isSame(fields: CallerFields): boolean {
    return !this.#hasEnded && isDeepStrictEqual({ ...this }, { ...fields });
  }

  end(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#controller?.abort();
  }

  #at(time: number, what: () => void): void {
    const left = Math.min(Math.max(time - this.#clock(), 0), LONGEST_TIMER);
    this.#timers.push(setTimeout(what, left).unref());
  }
}
