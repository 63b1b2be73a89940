/** Where each person is signed in: their sessions by their beginning, and those that they signed out. */
import { sha256 } from '../base/random-id.ts';
import { transactionOf } from '../storage/account-turns.ts';
import { deleteExpired } from '../storage/cleaning.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import type { Account } from './account.ts';
import { keptBrowser, type Origin } from './activity/activity.ts';
import { browserInWords } from './browser-names.ts';

export interface BegunSession {
  /** As the session has it; its cookie is another value. */
  readonly uid: string;
  readonly begunAt: Date;
  readonly origin: Origin;
}

export interface RecordedSession extends BegunSession {
  readonly accountId: string;
  /** The generation of the account's sessions in which it was begun. */
  readonly generation: number;
}

export type SessionList = ReturnType<typeof createSessionList>;

/** Of one person; those before are over, or nobody looks that far. */
const MOST_LISTED = 20;
/** Ended one by one by a person, long after which none of the first can be alive. */
const MOST_ENDED = 1_000;
const PUBLIC_ID = /^ses_[A-Za-z0-9_-]{16}$/;

/** How operators name a session: computed from its uid, which it does not reveal. */
export const sessionId = ({ uid }: Pick<BegunSession, 'uid'>): string =>
  `ses_${sha256(uid).slice(0, 16)}`;

export const isSessionId = (id: string): boolean => PUBLIC_ID.test(id);

/** `sessionId` in SQL. */
const PUBLIC_ID_COLUMN = `'ses_' ||
  translate(left(encode(sha256(convert_to(uid, 'UTF8')), 'base64'), 16), '+/', '-_')`;

/** For the log: which session was ended. */
export const sessionDetails = (session: Pick<BegunSession, 'uid' | 'origin'>) => ({
  session_id: sessionId(session),
  browser: browserInWords(session.origin.browser),
});

export function createSessionList(parts: {
  readonly database: Database;
  /** For who changed the account, and answers sooner than the database tells. */
  readonly accounts: { forget(id: string): void };
}) {
  const { database, accounts } = parts;
  return {
    /** Somebody has signed in, or their session was replaced by this one. */
    async note(
      accountId: string,
      generation: number,
      { uid, begunAt, origin }: BegunSession,
    ): Promise<void> {
      await database.query(
        `INSERT INTO browser_sessions (uid, account_id, generation, begun_at, address, browser)
          SELECT $1, id, $3, $4, $5, $6 FROM accounts WHERE id = $2
          ON CONFLICT (uid) DO UPDATE SET generation = excluded.generation,
            begun_at = excluded.begun_at, address = excluded.address, browser = excluded.browser
            WHERE browser_sessions.account_id = excluded.account_id`,
        [uid, accountId, generation, begunAt, origin.address, keptBrowser(origin.browser)],
      );
    },

    /**
     * Those that may still count, the latest first. Whether one is alive, the token store knows.
     *
     * @param limit 20 if none is given.
     */
    async of(
      { id, sessionGeneration, endedSessions }: Account,
      limit: number = MOST_LISTED,
    ): Promise<BegunSession[]> {
      const rows = await database.query<Omit<BegunSession, 'origin'> & Origin>(
        `SELECT uid, begun_at AS "begunAt", address, browser FROM browser_sessions
          WHERE account_id = $1 AND generation >= $2 AND uid <> ALL($3)
          ORDER BY begun_at DESC, uid LIMIT $4`,
        [id, sessionGeneration, endedSessions, limit],
      );
      return rows.map(({ uid, begunAt, ...origin }) => ({ uid, begunAt, origin }));
    },

    /** Finds a session by its public id or its uid, whether it is over or not. */
    async find(id: string): Promise<RecordedSession | undefined> {
      const [row] = await database.query<Omit<RecordedSession, 'origin'> & Origin>(
        `SELECT uid, account_id AS "accountId", generation, begun_at AS "begunAt", address, browser
          FROM browser_sessions WHERE ${isSessionId(id) ? PUBLIC_ID_COLUMN : 'uid'} = $1`,
        [id],
      );
      if (!row) return undefined;
      const { uid, accountId, generation, begunAt, ...origin } = row;
      return { uid, accountId, generation, begunAt, origin };
    },

    /**
     * From the next request on the session does not count, at every node and whatever is restored.
     *
     * @returns false where this account has no such session.
     */
    async end(accountId: string, uid: string, alongside: Alongside): Promise<boolean> {
      const isEnded = await transactionOf(database, accountId, async (tx) => {
        const ended = await tx.query(
          `UPDATE accounts
            SET ended_sessions = (ended_sessions || $2::text)[
              greatest(1, cardinality(ended_sessions) + 2 - ${MOST_ENDED}):]
            WHERE id = $1 AND $2 <> ALL(ended_sessions) AND EXISTS (
              SELECT FROM browser_sessions WHERE uid = $2 AND account_id = $1)
            RETURNING 1`,
          [accountId, uid],
        );
        if (ended.length > 0) await alongside(tx);
        return ended.length > 0;
      });
      if (isEnded) accounts.forget(accountId);
      return isEnded;
    },

    removeOlderThan: (olderThan: Date, limit: number): Promise<number> =>
      deleteExpired(
        database,
        [{ table: 'browser_sessions', column: 'begun_at' }],
        olderThan,
        limit,
      ),
  };
}
