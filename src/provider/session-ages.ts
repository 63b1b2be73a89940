/** How long a browser session lives: by the settings of now, whatever they were when it was written. */
import type { StoredRecord } from '../storage/token-store.ts';

/** What is stored of a session and says how old it is, in seconds since the epoch. */
export interface SessionTimes {
  /** The sign-in. */
  readonly loginTs?: number | undefined;
  /** The last request that renewed the idle time. Nodes of the version before do not write it. */
  readonly seenAt?: number;
}

/** @returns seconds since the epoch. */
export function endOfSession(
  { data: { loginTs = 0, seenAt }, expiresAt }: StoredRecord<SessionTimes>,
  ages: { readonly idleSeconds: number; readonly absoluteSeconds: number },
): number {
  const idleEnd = seenAt === undefined ? expiresAt : seenAt + ages.idleSeconds;
  return Math.min(expiresAt, idleEnd, loginTs + ages.absoluteSeconds);
}
