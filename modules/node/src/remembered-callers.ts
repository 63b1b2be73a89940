/** A cache of introspection answers about active tokens, kept correct by the change stream. */
import { isDeepStrictEqual } from 'node:util';
import type { Caller, CallerFields } from './caller.ts';
import { type KnownCaller, knownCaller } from './known-caller.ts';

/** Each cached caller is checked once per cycle. A cycle is this fraction of `maxAgeMs`. */
const CYCLE = 1 / 20;
/** Latest time to introspect again, as a fraction of `maxAgeMs`: it leaves time for a retry. */
const LATEST_DUE = 1 - 2 * CYCLE;
/** Milliseconds after the last call for which a caller whose signal was read is kept current. */
const MAX_IDLE = 86_400_000;
/**
 * Milliseconds after a change for which answers are not cached: another node of the service may
 * answer before it has received the change.
 */
const SETTLING = 5_000;
/** Maximum number of changed names within `SETTLING`. Beyond it (a large import) the cache is cleared. */
const MAX_CHANGES = 100_000;

/** The time of a request or of a change. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Number of changes received so far. It orders moments, because the clock may be set back. */
  readonly changes: number;
}

/**
 * @param maxSize maximum number of callers; a further one evicts the one that was cached first.
 * @param maxAgeMs milliseconds after which an answer is no longer used, even if no change was announced.
 */
export function createRememberedCallers(parts: {
  readonly maxSize: number;
  readonly maxAgeMs: number;
  readonly clock: () => number;
}) {
  const { maxSize, maxAgeMs, clock } = parts;
  const remembered = new Map<string, Remembered>();
  /** Position of the search for callers to introspect again. */
  let cursor = remembered.values();
  /** Callers by each id in their answer. Most ids belong to one caller, which needs no set. */
  const named = new Map<string, Remembered | Set<Remembered>>();
  /** The latest change of each name, oldest first. */
  const changed = new Map<string, Moment>();
  let changes = 0;
  /** The latest change that may affect every answer: `everything`, or a change whose name is no longer stored. */
  let unnamed: Moment = { at: clock(), changes };

  function remove(entry: Remembered): void {
    remembered.delete(entry.token);
    for (const name of entry.names) {
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

  /** Returns a caller whose end removes its entry. */
  function callerOf(token: string, fields: CallerFields): Remembered['caller'] {
    const caller = knownCaller(fields, clock, () => {
      const entry = remembered.get(token);
      if (entry?.caller === caller) remove(entry);
    });
    return caller;
  }

  function add(added: Omit<Remembered, 'names'>): void {
    const { token, caller } = added;
    // The organizations are the largest part of a caller, so callers of one account share them.
    const [first] = entriesOf(caller.subject);
    if (first && isDeepStrictEqual(first.caller.organizations, caller.organizations)) {
      caller.organizations = first.caller.organizations;
    }
    const [oldest] = remembered.size >= maxSize ? remembered.values() : [];
    if (oldest) remove(oldest);
    const entry = { ...added, names: namesOf(caller) };
    remembered.set(token, entry);
    for (const name of entry.names) {
      const found = named.get(name);
      if (found instanceof Set) found.add(entry);
      else named.set(name, found ? new Set([found, entry]) : entry);
    }
  }

  /** Returns no array, because usually only one entry is read, but a client may have many tokens. */
  const entriesOf = (name: string): Iterable<Remembered> => {
    const found = named.get(name);
    if (found === undefined) return [];
    return found instanceof Set ? found : [found];
  };

  /** Returns the latest change of any id in the caller's answer. */
  function lastChange(caller: KnownCaller): Moment {
    let last = unnamed;
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
      // If the clock was set back to a time before the answer, do not use the answer.
      return entry.since <= now && now < entry.until ? entry.caller : undefined;
    },

    /** Returns the current moment. Call it when an introspection request is sent. */
    now: (): Moment => ({ at: clock(), changes }),

    /**
     * Caches the answer about an active token. An unchanged answer keeps the same caller object.
     *
     * @param asked when the answer was requested: a result of `now`.
     */
    keep(token: string, fields: CallerFields, asked: Moment): Caller {
      const before = remembered.get(token);
      const same = before?.caller.isSame(fields) ? before : undefined;
      const caller = same?.caller ?? callerOf(token, fields);
      const change = lastChange(caller);
      if (before && !same) remove(before);
      // If a change was announced after the request, the answer may not include the change.
      if (asked.changes < change.changes) {
        caller.end();
        return caller;
      }
      const settlesAt = change.at + SETTLING;
      const isSettled = asked.at >= settlesAt;
      caller.isVouchedFor(isSettled ? undefined : settlesAt);
      const expiry = caller.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      const times = {
        since: asked.at,
        until: isSettled ? Math.min(asked.at + maxAgeMs, expiry) : asked.at,
        dueAt: asked.at + maxAgeMs * (LATEST_DUE - Math.random() / 2),
      };
      if (same) Object.assign(same, times);
      else add({ token, caller, usedAt: asked.at, ...times });
      return caller;
    },

    /** Removes the cached caller of a token that is no longer active. */
    drop,

    /**
     * Returns the tokens that must be introspected again, and removes idle callers. The
     * introspections are spread over half of `maxAgeMs`, and happen before an answer is too old.
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
          // The answer will set `dueAt` again. If no answer arrives, the token is introspected again at this time.
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

    /**
     * Aborts all signals, and keeps the cached answers. Call it when changes are missed: the answers may be used again
     * as soon as all missed changes were passed to `change`.
     */
    endSignals(): void {
      for (const entry of [...remembered.values()]) {
        const { caller } = entry;
        entry.caller = callerOf(entry.token, { ...caller });
        caller.end();
      }
    },
  };
}

interface Remembered {
  readonly token: string;
  caller: KnownCaller & Caller;
  /** The ids under which the entry is found, even if the API changes the caller object. */
  readonly names: readonly string[];
  /** The answer may be used from this time on, until `until`. */
  since: number;
  until: number;
  /** When to introspect again, in the background. */
  dueAt: number;
  usedAt: number;
}

/** Returns true if the answer may be renewed: the service records each introspection as a use of the token. */
function isInUse({ caller, since, usedAt }: Remembered, now: number): boolean {
  return usedAt > since || (caller.hasSignal && now - usedAt < MAX_IDLE);
}

/** The ids of a caller in events, each once: account, client, authorization or API key, organizations. */
function namesOf(caller: KnownCaller): string[] {
  const { organizations, withheld = [], subject, clientId, authorization, apiKey } = caller;
  const ids = [...organizations.map(({ id }) => id), ...withheld, subject, clientId, authorization, apiKey];
  return [...new Set(ids)].filter((id) => id !== undefined);
}
