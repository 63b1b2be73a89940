/** Computes when a browser session ends. The current settings apply, even to older sessions. */
import type { Settings } from '../config/settings.ts';
import type { StoredRecord, TokenStore } from '../storage/token-store.ts';

/** The times that are stored in a session, in seconds since the epoch. */
export interface SessionTimes {
  readonly loginTs?: number | undefined;
  /** When a request last restarted the idle time. */
  readonly seenAt: number;
}

type SessionLifetimes = Pick<Settings['sessions'], 'idleSeconds' | 'absoluteSeconds'>;

export function endOfSession(
  { data: { loginTs = 0, seenAt }, expiresAt }: StoredRecord<SessionTimes>,
  ages: SessionLifetimes,
): number {
  return Math.min(expiresAt, seenAt + ages.idleSeconds, loginTs + ages.absoluteSeconds);
}

export interface ActiveSession {
  readonly signedInAt: Date;
  /** When the last request was processed: a time between its start and its end. */
  readonly lastSeen: Date;
  readonly endsAt: Date;
}

/** Reads the sessions with these uids from the token store. Omits expired ones. @param now epoch seconds */
export async function findActiveSessions(
  store: Pick<TokenStore, 'readSessionByUid'>,
  uids: readonly string[],
  ages: SessionLifetimes,
  now: number,
): Promise<ReadonlyMap<string, ActiveSession>> {
  const records = await Promise.all(uids.map((uid) => store.readSessionByUid<SessionTimes>(uid)));
  return new Map(
    uids.flatMap((uid, index) => {
      const record = records[index];
      const end = record && endOfSession(record, ages);
      if (!end || end <= now) return [];
      const { loginTs = 0, seenAt } = record.data;
      const session = {
        signedInAt: new Date(loginTs * 1_000),
        lastSeen: new Date(seenAt * 1_000),
        endsAt: new Date(end * 1_000),
      };
      return [[uid, session] as const];
    }),
  );
}
