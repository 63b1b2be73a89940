/** The recorded sessions of each user, and the providers at which they authenticated. No other file ends a session. */
import { sha256 } from '../base/random-id.ts';
import { createTurns, lockAccount, lockedTransactionOf } from '../storage/account-turns.ts';
import { deleteExpired, refusalsExpiryJob } from '../storage/cleaning.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  type AccountRow,
  accountFrom,
  hasActiveSession,
  NO_GENERATION,
  SESSION_GENERATION,
} from './account.ts';
import { keptBrowser, type Origin } from './activity/activity.ts';
import { describeBrowser } from './browser-names.ts';
import type { Identity } from './identities/identities.ts';

/** The values that a stored session must have in common with its row in the database. */
export interface SessionKey {
  readonly accountId: string;
  /** Stays the same during the session, unlike the value of the session's cookie. */
  readonly uid: string;
  readonly cookieHash: string;
  /** The account's generation at the sign-in. The session has ended if the account has a later one. */
  readonly generation: number;
}

export interface StartedSession {
  /** The uid of the session, which is not the value of the session's cookie. */
  readonly uid: string;
  readonly begunAt: Date;
  readonly origin: Origin;
}

/** The session at a provider at which the user has authenticated. */
export interface ProviderSession extends Identity {
  readonly sid: string | undefined;
  /** What `latestLogout` returned before the provider was asked who the user is. */
  readonly latestLogout: number;
}

/** A sign-out at a provider: of the session `sid` there or, if it is undefined, of all sessions of the subject. */
interface SignOutAtProvider {
  readonly issuer: string;
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  /** Accepted only once. */
  readonly token: { readonly id: string; readonly seconds: number };
}

/** Whom a sign-out at a provider concerns. */
interface SignedOutAtProvider {
  /** `isLinked` is false if only a session came from the provider: the user has removed the link since. */
  readonly accounts: readonly { readonly id: string; readonly isLinked: boolean }[];
  /** How many sessions it ended. */
  readonly sessions: number;
}

export interface RecordedSession extends StartedSession {
  readonly accountId: string;
  /** The account's session generation when the session began. */
  readonly generation: number;
  /** Null unless this session was ended singly. */
  readonly endedAt: Date | null;
}

export type SessionList = ReturnType<typeof createSessionList>;

/** For the tokens before this one. Shorter than a provider waits for its answer. */
const MAX_WAIT_MS = 2_000;

const PUBLIC_ID = /^ses_[A-Za-z0-9_-]{16}$/;

/** Returns the id that operators use for a session: computed from its uid without revealing it. */
export const sessionId = ({ uid }: Pick<StartedSession, 'uid'>): string => `ses_${sha256(uid).slice(0, 16)}`;

export const isSessionId = (id: string): boolean => PUBLIC_ID.test(id);

/** SQL expression for the result of `sessionId`, as in the index of the schema. No uid contains a backslash. */
const PUBLIC_ID_COLUMN = `('ses_' ||
  translate(left(encode(sha256(decode(uid, 'escape')), 'base64'), 16), '+/', '-_'))`;

/** SQL: the rows of `session_providers` of a sign-out of `$3` or, if that is null, of all sessions of `$2`. */
const SIGNED_OUT = 'issuer = $1 AND ($2::text IS NULL OR subject = $2) AND ($3::text IS NULL OR sid = $3)';

/** SQL: true if a logout token later than number `$3` concerns the session `$1`, which the issuer `$2` proved. */
const SIGNED_OUT_SINCE = `EXISTS (
  SELECT FROM session_providers AS provider JOIN logout_tokens AS token USING (issuer)
    WHERE provider.uid = $1 AND issuer = $2 AND token.number > $3
      AND coalesce(token.subject = provider.subject, true) AND coalesce(token.sid = provider.sid, token.sid IS NULL))`;

/** Returns the details of log entries about a session that was ended. */
export const sessionDetails = (session: Pick<StartedSession, 'uid' | 'origin'>) => ({
  session_id: sessionId(session),
  browser: describeBrowser(session.origin.browser),
});

export function createSessionList({ database }: { readonly database: Database }) {
  const inTurn = createTurns(1, { maxWaitMs: MAX_WAIT_MS });
  return {
    /**
     * Records a session that begins or continues. Call it before the session is stored: without its row, no stored
     * session is valid.
     *
     * @param from where the user has just authenticated, if that was at a provider
     * @param raised by how much this request itself has raised the account's generation. If the generation has risen by
     *   more, another request has ended all sessions, including this one
     * @returns false if the session has ended, so that it does not continue
     */
    async record(
      { accountId, uid, cookieHash, generation }: SessionKey,
      { begunAt, origin }: Pick<StartedSession, 'begunAt' | 'origin'>,
      { from, raised = 0 }: { readonly from?: ProviderSession | undefined; readonly raised?: 0 | 1 | undefined } = {},
    ): Promise<boolean> {
      const recorded = await database.query(
        `WITH session AS (
            INSERT INTO browser_sessions (uid, account_id, cookie_hash, generation, begun_at, address, browser)
              SELECT $1, id, $3, $4, $5, $6, $7 FROM accounts WHERE id = $2 AND $4::bigint < ${NO_GENERATION}
              ON CONFLICT (uid) DO UPDATE SET cookie_hash = excluded.cookie_hash,
                generation = greatest(browser_sessions.generation, excluded.generation),
                begun_at = excluded.begun_at, address = excluded.address, browser = excluded.browser
                WHERE browser_sessions.account_id = excluded.account_id AND browser_sessions.ended_at IS NULL
                  AND browser_sessions.generation >= excluded.generation - $11
              RETURNING uid
          ), provider AS (
            INSERT INTO session_providers (uid, issuer, subject, sid)
              SELECT uid, $8, $9, $10 FROM session WHERE $8::text IS NOT NULL
              ON CONFLICT (uid, issuer) DO UPDATE SET subject = excluded.subject,
                sid = coalesce(excluded.sid, session_providers.sid)
          )
          SELECT FROM session`,
        [
          uid,
          accountId,
          cookieHash,
          generation,
          begunAt,
          origin.address,
          keptBrowser(origin.browser),
          from?.issuer ?? null,
          from?.subject ?? null,
          from?.sid ?? null,
          raised,
        ],
      );
      if (recorded.length === 0) return false;
      if (!from) return true;
      // Ask only now: a sign-out that does not find the recorded session is found here.
      const signedOut = await database.query(
        `UPDATE browser_sessions SET ended_at = ${database.now()} WHERE uid = $1 AND ${SIGNED_OUT_SINCE} RETURNING 1`,
        [uid, from.issuer, from.latestLogout],
      );
      return signedOut.length === 0;
    },

    /** Returns the number of the latest logout token of all providers. No clock, so that none can be wrong. */
    async latestLogout(): Promise<number> {
      const [latest] = await database.query<{ number: number | null }>(
        'SELECT max(number)::float8 AS number FROM logout_tokens',
      );
      return latest?.number ?? 0;
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

    /**
     * Returns sessions that may be active, latest first. Only the token store knows whether a session has been idle for
     * too long.
     *
     * @param skip the number of later sessions that an earlier page showed
     */
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
          FROM browser_sessions WHERE ${isSessionId(id) ? PUBLIC_ID_COLUMN : 'uid'} = $1`,
        [id],
      );
      if (!row) return undefined;
      const { uid, accountId, generation, begunAt, endedAt, ...origin } = row;
      return { uid, accountId, generation, begunAt, endedAt, origin };
    },

    /** Ends a session of this browser. */
    async signOut(uid: string): Promise<void> {
      await database.query(
        `UPDATE browser_sessions SET ended_at = ${database.now()} WHERE uid = $1 AND ended_at IS NULL`,
        [uid],
      );
    },

    /**
     * Ends the session from the next request on, on every node, even if the token store is restored. Also ends a
     * session of an earlier generation, because the request that raised the generation may be about to continue that
     * session.
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

    /**
     * Ends the sessions of which a provider says that their user has signed out there.
     *
     * @param inTransaction runs in the same transaction.
     * @returns undefined for a token that was used before.
     * @throws StorageUnavailable `too_many_waiting` if earlier tokens take too long: this one can be sent again
     */
    async endAtProvider(
      { issuer, subject, sid, token }: SignOutAtProvider,
      inTransaction: InTransaction<SignedOutAtProvider>,
    ): Promise<SignedOutAtProvider | undefined> {
      const tokenHash = sha256(`${issuer} ${token.id}`);
      const values = [issuer, subject ?? null, sid ?? null];
      // Not in the transaction: a session that is recorded now finds the token, or the transaction finds the session.
      // One after another: a token with a lower number than `latestLogout` must not appear later. Those of this node
      // wait without a connection.
      await inTurn(
        () =>
          database.query(
            `WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtext('gatehouse logout tokens')))
              INSERT INTO logout_tokens (issuer, subject, sid, token_hash, expires_at)
                SELECT $1, $2, $3, $4, ${database.now()} + $5 * interval '1 second' FROM turn ON CONFLICT DO NOTHING`,
            [...values, tokenHash, token.seconds],
          ),
        issuer,
      );
      return database.transaction(async (tx) => {
        // If several requests send the same token, only one of them uses it.
        const isNew = await tx.query(
          'UPDATE logout_tokens SET is_used = true WHERE token_hash = $1 AND NOT is_used RETURNING 1',
          [tokenHash],
        );
        if (isNew.length === 0) return undefined;
        // Also accounts whose sessions have all ended: the provider's sign-out may end more than sessions.
        const theirs = await tx.query<{ id: string; isLinked: boolean }>(
          `WITH signed_out AS (SELECT uid, subject FROM session_providers WHERE ${SIGNED_OUT}),
            theirs AS (
              SELECT account_id, false AS linked FROM browser_sessions JOIN signed_out USING (uid)
              UNION SELECT account_id, true FROM account_identities
                WHERE issuer = $1 AND subject IN (SELECT $2 UNION SELECT subject FROM signed_out))
            SELECT account_id AS id, bool_or(linked) AS "isLinked" FROM theirs GROUP BY account_id`,
          values,
        );
        await lockAccount(tx, ...theirs.map(({ id }) => id));
        const ended = await tx.query<{ accountId: string; hadEnded: boolean }>(
          `UPDATE browser_sessions SET ended_at = ${tx.now()}
            WHERE uid IN (SELECT uid FROM session_providers WHERE ${SIGNED_OUT}) AND ended_at IS NULL
            RETURNING account_id AS "accountId", generation < (
              SELECT ${SESSION_GENERATION} FROM accounts WHERE id = browser_sessions.account_id) AS "hadEnded"`,
          values,
        );
        const outcome = {
          accounts: theirs.filter(({ id, isLinked }) => isLinked || ended.some(({ accountId }) => accountId === id)),
          sessions: ended.filter(({ hadEnded }) => !hadEnded).length,
        };
        await inTransaction(tx, outcome);
        return outcome;
      });
    },

    /** By the database's clock, too: a node with a wrong clock must not let a used token be used again. */
    removeUsedTokens: refusalsExpiryJob(database, [{ table: 'logout_tokens', column: 'expires_at' }]),

    removeOlderThan: (olderThan: Date, limit: number): Promise<number> =>
      deleteExpired(database, [{ table: 'browser_sessions', column: 'begun_at' }], olderThan, limit),
  };
}
