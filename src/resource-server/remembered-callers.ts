/** Good answers of the service, remembered until it says that they are no longer true. */
import { isDeepStrictEqual } from 'node:util';
import type { Caller, CallerFields } from './caller.ts';
import { type KnownCaller, knownCaller } from './known-caller.ts';

/** All callers are looked at once in this share of the time after which they are asked about again. */
const CYCLE = 1 / 20;
/** Leaves time for the next look and for an answer: it is asked for twice before `maxAgeMs` is over. */
const LATEST_DUE = 1 - 2 * CYCLE;
/** Milliseconds. A caller is asked about for so long after its last call if its signal may be in use. */
const MAX_IDLE = 86_400_000;
/**
 * Milliseconds. Another node of the service, which answers, may hear of a change by so much later
 * than the one that told of it: till then what it answers is not used again.
 */
const SETTLING = 5_000;
/** Names of what changed within that time, as of a large import; with more of them everything has. */
const MOST_CHANGES = 100_000;

/** The moment of a question or a change. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** How many changes were heard until then. It orders moments; the clock may be put back. */
  readonly changes: number;
}

/**
 * @param most further ones take the place of those that were asked about longest ago.
 * @param maxAgeMs milliseconds after which an answer is no longer used, whatever was heard.
 */
export function createRememberedCallers(parts: {
  readonly most: number;
  readonly maxAgeMs: number;
  readonly clock: () => number;
}) {
  const { most, maxAgeMs, clock } = parts;
  const remembered = new Map<string, Remembered>();
  /** Where the search for callers to ask about again goes on. */
  let cursor = remembered.values();
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

  function nextEntry(): Remembered | undefined {
    const { value, done } = cursor.next();
    if (!done) return value;
    cursor = remembered.values();
    return cursor.next().value;
  }

  return {
    /** Who need not be asked about. */
    find(token: string): Caller | undefined {
      const entry = remembered.get(token);
      if (!entry) return undefined;
      const now = clock();
      entry.usedAt = now;
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

    /** The token is not good any more. */
    drop,

    /**
     * Returns the tokens that it is time to ask about again, and forgets callers who no longer call.
     * They are spread over half of `maxAgeMs`, and asked about before it is over.
     *
     * @param sinceLastMs milliseconds since the last call: it looks at so many callers that each is
     *   looked at in time.
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
          // The answer sets it anew. Without an answer it is asked for once more.
          entry.dueAt = now + maxAgeMs * CYCLE;
        } else remove(entry);
      }
      return due;
    },

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
  /** When to ask again, in the background. */
  dueAt: number;
  usedAt: number;
}

/** An answer that was not used is not asked for again: the service would count the question as a use. */
function isInUse({ caller, since, usedAt }: Remembered, now: number): boolean {
  return usedAt > since || (caller.hasSignal && now - usedAt < MAX_IDLE);
}

/** As events name them: account, client, authorization or API key, organizations. */
function namesOf(caller: KnownCaller): string[] {
  const names = caller.organizations.map(({ id }) => id);
  for (const id of [caller.subject, caller.clientId, caller.authorization, caller.apiKey]) {
    if (id !== undefined && !names.includes(id)) names.push(id);
  }
  return names;
}
