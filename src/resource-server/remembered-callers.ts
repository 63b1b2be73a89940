/** Callers that were let in a moment ago, where the service allows an answer to be used again. */
import type { Caller } from './caller.ts';
import type { IntrospectionAnswer } from './introspection-answer.ts';

export interface RememberedCallers {
  find(token: string): Caller | undefined;
  /** Keeps a caller as long as the service, the API and the token itself allow: often not at all. */
  keep(token: string, answer: IntrospectionAnswer): void;
  forget(token: string): void;
  forgetAll(): void;
}

/** A few megabytes at most. */
const MOST = 10_000;

/** @param seconds the longest time that the API wants; a token that was refused is asked about again. */
export function createRememberedCallers({
  seconds,
  clock,
}: {
  readonly seconds: number;
  readonly clock: () => number;
}): RememberedCallers {
  const remembered = new Map<string, { caller: Caller; since: number; until: number }>();

  return {
    find(token) {
      const found = remembered.get(token);
      if (!found) return undefined;
      const now = clock();
      // A clock that was put back must not make the time longer.
      if (found.since <= now && now < found.until) return found.caller;
      remembered.delete(token);
      return undefined;
    },

    keep(token, { caller, maxAgeSeconds }) {
      if (!caller) return;
      const since = clock();
      const allowed = since + Math.min(seconds, maxAgeSeconds) * 1000;
      const until = Math.min(allowed, caller.expiresAt?.getTime() ?? allowed);
      if (until <= since) return;
      const [oldest] = remembered.keys();
      if (oldest !== undefined && remembered.size >= MOST) remembered.delete(oldest);
      remembered.delete(token);
      remembered.set(token, { caller, since, until });
    },

    forget: (token) => void remembered.delete(token),
    forgetAll: () => remembered.clear(),
  };
}
