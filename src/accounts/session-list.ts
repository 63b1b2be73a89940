/** The recorded sessions of each user. No other file ends a session. */
import { sha256 } from '../base/random-id.ts';
import { lockedTransactionOf } from '../storage/account-turns.ts';
import { deleteExpired } from '../storage/cleaning.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  type AccountRow,
  accountFrom,
  hasActiveSession,
  NO_GENERATION,
} from './account.ts';
import { keptBrowser, type Origin } from './activity/activity.ts';
import { describeBrowser } from './browser-names.ts';

/** The values that a stored session must have in common with its row in the database. */
export interface SessionKey {
  readonly accountId: string;
  /** The id of the session, which stays the same during the session, unlike the value of the cookie. */
  readonly uid: string;
  readonly cookieHash: string;
  /** The account's generation at the sign-in. The session has ended if the account has a later one. */
  readonly generation: number;
}

export interface StartedSession {
  readonly uid: string;
  readonly begunAt: Date;
  readonly origin: Origin;
}

export interface RecordedSession extends StartedSession {
  readonly accountId: string;
  readonly generation: number;
  /** Null unless this session itself was ended. */
  readonly endedAt: Date | null;
}

export type SessionList = ReturnType<typeof createSessionList>;

const PUBLIC_ID = /^ses_[A-Za-z0-9_-]{16}$/;

/** Returns the id that operators use for a session. It is computed from the uid without revealing it. */
export const sessionId = ({ uid }: Pick<StartedSession, 'uid'>): string => `ses_${sha256(uid).slice(0, 16)}`;

/** Computes `sessionId` in SQL, with the expression of its index. `decode` is correct: no uid contains a backslash. */
const PUBLIC_ID_COLUMN = `('ses_' ||
  translate(left(encode(sha256(decode(uid, 'escape')), 'base64'), 16), '+/', '-_'))`;

export const sessionDetails = (session: Pick<StartedSession, 'uid' | 'origin'>) => ({
  session_id: sessionId(session),
  browser: describeBrowser(session.origin.browser),
});

export function createSessionList({ database }: { readonly database: Database }) {
  return {
    /**
     * Records a session that begins or continues. Call this before the session is stored: a stored session is valid
     * only with a row in `browser_sessions`.
     *
     * @param raised how many times this request has raised the account's generation. If the generation has risen more
     * often, another request has ended all sessions, including this one.
     * @returns false if the session has ended, so that it does not continue
     */
    async record(
      { accountId, uid, cookieHash, generation }: SessionKey,
      { begunAt, origin }: Pick<StartedSession, 'begunAt' | 'origin'>,
      raised: 0 | 1 = 0,
    ): Promise<boolean> {
      const recorded = await database.query(
        `INSERT INTO browser_sessions (uid, account_id, cookie_hash, generation, begun_at, address, browser)
          SELECT $1, id, $3, $4, $5, $6, $7 FROM accounts WHERE id = $2 AND $4::bigint < ${NO_GENERATION}
          ON CONFLICT (uid) DO UPDATE SET cookie_hash = excluded.cookie_hash,
            generation = greatest(browser_sessions.generation, excluded.generation),
            begun_at = excluded.begun_at, address = excluded.address, browser = excluded.browser
            WHERE browser_sessions.account_id = excluded.account_id AND browser_sessions.ended_at IS NULL
              AND browser_sessions.generation >= excluded.generation - $8
          RETURNING 1`,
        [uid, accountId, cookieHash, generation, begunAt, origin.address, keptBrowser(origin.browser), raised],
      );
      return recorded.length > 0;
    },

    /** Returns the account of a session; undefined if the session has ended, or was never recorded. */
    async accountOf({ accountId, uid, cookieHash, generation }: SessionKey): Promise<Account | undefined> {
      const [row] = await database.query<AccountRow>(
        `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE id = $1 AND ${hasActiveSession('$2', '$3', '$4')}`,
        [accountId, uid, generation, cookieHash],
        'session',
      );
      return row && accountFrom(row);
    },

    /** Returns sessions, latest first. Some may have expired: only the token store knows their idle time. */
    async of({ id, sessionGeneration }: Account, limit: number, skip = 0): Promise<StartedSession[]> {
      const rows = await database.query<Omit<StartedSession, 'origin'> & Origin>(
        `SELECT uid, begun_at AS "begunAt", address, browser FROM browser_sessions
          WHERE account_id = $1 AND generation >= $2 AND ended_at IS NULL
          ORDER BY begun_at DESC, uid LIMIT $3 OFFSET $4`,
        [id, sessionGeneration, limit, skip],
      );
      return rows.map(({ uid, begunAt, ...origin }) => ({ uid, begunAt, origin }));
    },

    /** Finds a session by its public id or its uid, even if it has ended. */
    async find(id: string): Promise<RecordedSession | undefined> {
      const [row] = await database.query<Omit<RecordedSession, 'origin'> & Origin>(
        `SELECT uid, account_id AS "accountId", generation::float8, begun_at AS "begunAt", ended_at AS "endedAt",
            address, browser
          FROM browser_sessions WHERE ${PUBLIC_ID.test(id) ? PUBLIC_ID_COLUMN : 'uid'} = $1`,
        [id],
      );
      if (!row) return undefined;
      const { uid, accountId, generation, begunAt, endedAt, ...origin } = row;
      return { uid, accountId, generation, begunAt, endedAt, origin };
    },

    async signOut(uid: string): Promise<void> {
      await database.query(
        `UPDATE browser_sessions SET ended_at = ${database.now()} WHERE uid = $1 AND ended_at IS NULL`,
        [uid],
      );
    },

    /**
     * Ends the session on every node, even if the token store is restored. Also ends a session of an earlier
     * generation, because the request that raised the generation may still renew this session.
     *
     * @returns false if this account has no such session, or if it had already ended
     */
    end: (accountId: string, uid: string, inTransaction: InTransaction): Promise<boolean> =>
      lockedTransactionOf(database, accountId, async (tx) => {
        const ended = await tx.query(
          `UPDATE browser_sessions SET ended_at = ${tx.now()}
            WHERE uid = $2 AND account_id = $1 AND ended_at IS NULL RETURNING 1`,
          [accountId, uid],
        );
        if (ended.length === 0) return false;
        await inTransaction(tx);
        return true;
      }),

    removeOlderThan: (olderThan: Date, limit: number): Promise<number> =>
      deleteExpired(database, [{ table: 'browser_sessions', column: 'begun_at' }], olderThan, limit),
  };
}
