/** A cache of introspection answers about active tokens, kept correct by the change stream. */
import { isDeepStrictEqual } from 'node:util';
import type { Caller, CallerFields } from './caller.ts';
import { type KnownCaller, knownCaller } from './known-caller.ts';

/** Every cached caller is checked once in this fraction of `maxAgeMs`. */
const CYCLE = 1 / 20;
/** Latest introspection, as a fraction of `maxAgeMs`: leaves time for a second try before it is over. */
const LATEST_DUE = 1 - 2 * CYCLE;
/** Milliseconds after its last call for which a caller whose signal was read is introspected again. */
const MAX_IDLE = 86_400_000;
/**
 * Milliseconds after a change for which answers are not cached: another node of the service may
 * answer before it has heard of the change.
 */
const SETTLING = 5_000;
/** Maximum number of changed names within `SETTLING`. A large import exceeds it: then all is forgotten. */
const MAX_CHANGES = 100_000;

/** The time of a request or of a change. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Number of changes heard until then. It orders moments, because the clock may be set back. */
  readonly changes: number;
}

/**
 * @param most maximum number of callers; a further one evicts the one that was cached first.
 * @param maxAgeMs milliseconds after which an answer is no longer used, whatever the stream says.
 */
export function createRememberedCallers(parts: {
  readonly most: number;
  readonly maxAgeMs: number;
  readonly clock: () => number;
}) {
  const { most, maxAgeMs, clock } = parts;
  const remembered = new Map<string, Remembered>();
  /** Position of the search for callers to introspect again. */
  let cursor = remembered.values();
  /** Callers by each id that their answer names. Most ids name one caller, which needs no set. */
  const named = new Map<string, Remembered | Set<Remembered>>();
  /** The latest change of each name, oldest first. */
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

  /** Not copied: most callers of this function read one entry, and a client may have many tokens. */
  const entriesOf = (name: string): Iterable<Remembered> => {
    const found = named.get(name);
    if (found === undefined) return [];
    return found instanceof Set ? found : [found];
  };

  /** Returns the latest change of anything that the answer names. */
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
      // An answer that was requested before this change may still arrive.
      unnamed = { at: Math.min(change.at, at), changes: change.changes };
    }
  }

  function nextEntry(): Remembered | undefined {
    const { value, done } = cursor.next();
    if (!done) return value;
    cursor = remembered.values();
    return cursor.next().value;
  }

  return {
    /** Returns the cached caller; undefined if the token must be introspected. */
    find(token: string): Caller | undefined {
      const entry = remembered.get(token);
      if (!entry) return undefined;
      const now = clock();
      entry.usedAt = now;
      // A clock that was set back must not extend the time.
      return entry.since <= now && now < entry.until ? entry.caller : undefined;
    },

    /** Returns the present moment, for a request that is sent now. */
    now: (): Moment => ({ at: clock(), changes }),

    /**
     * Caches the answer about an active token. An unchanged answer keeps the same caller object.
     *
     * @param asked when the answer was requested, from `now`.
     */
    keep(token: string, fields: CallerFields, asked: Moment): Caller {
      const before = remembered.get(token);
      const isSame = before?.caller.isSame(fields) === true;
      const caller = isSame ? before.caller : knownCaller(fields, clock, () => drop(token));
      const change = lastChange(caller);
      // The answer may not contain a change that happened after the request.
      const isOutdated = asked.changes < change.changes;
      if (before && (!isSame || isOutdated)) remove(before);
      if (isOutdated) {
        caller.end();
        return caller;
      }
      // The organizations are the largest part of a caller, so callers of one account share them.
      const [first] = isSame ? [] : entriesOf(caller.subject);
      if (first && isDeepStrictEqual(first.caller.organizations, caller.organizations)) {
        caller.organizations = first.caller.organizations;
      }
      const settled = change.at + SETTLING;
      const isSettled = asked.at >= settled;
      caller.isVouchedFor(isSettled ? undefined : settled);
      const expiry = caller.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      const until = isSettled ? Math.min(asked.at + maxAgeMs, expiry) : asked.at;
      const times = { since: 0, until: 0, dueAt: 0, usedAt: asked.at };
      const entry = before && isSame ? before : { token, caller, ...times };
      entry.since = asked.at;
      entry.until = until;
      entry.dueAt = asked.at + maxAgeMs * (LATEST_DUE - Math.random() / 2);
      if (entry === before) return caller;
      const [oldest] = remembered.size >= most ? remembered.values() : [];
      if (oldest) remove(oldest);
      add(entry);
      return caller;
    },

    /** Removes the caller of a token that is no longer active. */
    drop,

    /**
     * Returns the tokens that are due for another introspection, and removes callers that no longer
     * call. The introspections are spread over half of `maxAgeMs`, and happen before it is over.
     *
     * @param sinceLastMs milliseconds since the last call of this function. It decides how many
     *   callers are checked, so that each is checked in time.
     */
    takeDue(sinceLastMs: number): string[] {
      const now = clock();
      const share = Math.min(sinceLastMs / (maxAgeMs * CYCLE), 1);
      const due: string[] = [];
      for (let left = Math.ceil(remembered.size * share); left > 0; left -= 1) {
        const entry = nextEntry();
        if (!entry || (entry.since <= now && now < entry.dueAt)) continue;
        if (isInUse(entry, now)) {
          due.push(entry.token);
          // The answer sets it again. Without an answer, the token is introspected once more.
          entry.dueAt = now + maxAgeMs * CYCLE;
        } else remove(entry);
      }
      return due;
    },

    /** @param what an id, the ids of an account and its client, or `everything`. */
    change(what: string): void {
      if (what === 'everything' || changed.size >= MAX_CHANGES) {
        forgetAll();
        return;
      }
      const [name = '', clientId] = what.split(' ');
      recordChange(name);
      for (const entry of entriesOf(name)) {
        if (clientId === undefined || entry.caller.clientId === clientId) remove(entry);
      }
    },

    forgetAll,
  };
}

interface Remembered {
  readonly token: string;
  readonly caller: KnownCaller & Caller;
  /** The answer may be used between these two times of the clock. */
  since: number;
  until: number;
  /** When to introspect again, in the background. */
  dueAt: number;
  usedAt: number;
}

/** Unused answers are not renewed: the service would record the introspection as a use of the token. */
function isInUse({ caller, since, usedAt }: Remembered, now: number): boolean {
  return usedAt > since || (caller.hasSignal && now - usedAt < MAX_IDLE);
}

/** The ids by which events name a caller: account, client, authorization or API key, organizations. */
function namesOf(caller: KnownCaller): string[] {
  const names = caller.organizations.map(({ id }) => id);
  for (const id of [caller.subject, caller.clientId, caller.authorization, caller.apiKey]) {
    if (id !== undefined && !names.includes(id)) names.push(id);
  }
  return names;
}
