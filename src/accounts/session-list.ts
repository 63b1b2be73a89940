/** The recorded sessions of each user, the providers that proved them, and the one place that ends a session. */
import type { Clock } from '../base/clock.ts';
import { sha256 } from '../base/random-id.ts';
import { lockAccount, lockedTransactionOf } from '../storage/account-turns.ts';
import { deleteExpired, expiryJob } from '../storage/cleaning.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { type Account, NO_GENERATION, SESSION_GENERATION } from './account.ts';
import { keptBrowser, type Origin } from './activity/activity.ts';
import { describeBrowser } from './browser-names.ts';
import type { Identity } from './identities/identities.ts';

export interface StartedSession {
  /** The uid of the session, which is not the value of the session's cookie. */
  readonly uid: string;
  readonly begunAt: Date;
  readonly origin: Origin;
}

/** The session at a provider with which the user of a session has authenticated. */
export interface ProviderSession extends Identity {
  readonly sid: string | undefined;
}

/** A sign-out at a provider: of the session `sid` there or, if it is undefined, of all sessions of the subject. */
interface SignOutAtProvider {
  readonly issuer: string;
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  /** Accepted only once. */
  readonly token: { readonly id: string; readonly seconds: number };
}

/** The accounts whose sessions a sign-out at a provider ended. */
interface SignedOutAtProvider {
  readonly accountIds: readonly string[];
  readonly sessions: number;
}

export interface RecordedSession extends StartedSession {
  readonly accountId: string;
  /** The account's session generation when the session began. */
  readonly generation: number;
}

export type SessionList = ReturnType<typeof createSessionList>;

/** Maximum number of listed sessions per user: older ones have ended, or are of no interest. */
const MAX_LISTED = 20;
/** Maximum number of stored uids of ended sessions per user: a further one ends every session of the account. */
const MAX_ENDED = 1_000;
const PUBLIC_ID = /^ses_[A-Za-z0-9_-]{16}$/;

/** Returns the id that operators use for a session: computed from its uid without revealing it. */
export const sessionId = ({ uid }: Pick<StartedSession, 'uid'>): string => `ses_${sha256(uid).slice(0, 16)}`;

export const isSessionId = (id: string): boolean => PUBLIC_ID.test(id);

/** SQL expression for the result of `sessionId`, as in the index of the schema. No uid contains a backslash. */
const PUBLIC_ID_COLUMN = `('ses_' ||
  translate(left(encode(sha256(decode(uid, 'escape')), 'base64'), 16), '+/', '-_'))`;

/** SQL: the rows of `session_providers` of a sign-out of `$3` or, if that is null, of all sessions of `$2`. */
const SIGNED_OUT = 'issuer = $1 AND ($2::text IS NULL OR subject = $2) AND ($3::text IS NULL OR sid = $3)';

/**
 * Ends those of these sessions that belong to the account. Call it with the account's row locked: otherwise it
 * does not see a session that is ended at the same moment. Stores only uids of recorded sessions of the present
 * generation, because the other ones have ended without that.
 *
 * @returns how many of them had not ended before
 */
async function endIn(tx: Queries, accountId: string, uids: readonly string[]): Promise<number> {
  const [ended] = await tx.query<{ sessions: number }>(
    `UPDATE accounts SET
        ended_sessions = CASE WHEN cardinality(kept.uids) > ${MAX_ENDED} THEN '{}' ELSE kept.uids END,
        session_generation = session_generation + (cardinality(kept.uids) > ${MAX_ENDED})::integer
      FROM (SELECT array_agg(uid) AS uids, count(*) FILTER (WHERE uid <> ALL(ended_sessions))::integer AS sessions
        FROM browser_sessions s JOIN accounts a ON a.id = s.account_id
        WHERE a.id = $1 AND s.generation >= ${SESSION_GENERATION} AND uid = ANY(ended_sessions || $2)) kept
      WHERE id = $1 AND kept.sessions > 0 RETURNING kept.sessions`,
    [accountId, uids],
  );
  return ended?.sessions ?? 0;
}

/** Returns the details of log entries about a session that was ended. */
export const sessionDetails = (session: Pick<StartedSession, 'uid' | 'origin'>) => ({
  session_id: sessionId(session),
  browser: describeBrowser(session.origin.browser),
});

export function createSessionList(parts: {
  readonly database: Database;
  readonly clock: Clock;
  /** Forgets a changed account, because the database's notification comes later. */
  readonly accounts: { forget(id: string): void };
}) {
  const { database, clock, accounts } = parts;
  return {
    /**
     * Records a session that began or continues, unless it can never be active. Call it before the session is
     * stored, so that no sign-out elsewhere misses the session.
     *
     * @param from where the user has just authenticated, if that was at a provider.
     */
    async record(
      accountId: string,
      generation: number,
      { uid, begunAt, origin }: StartedSession,
      from?: ProviderSession,
    ): Promise<void> {
      await database.query(
        `WITH session AS (
            INSERT INTO browser_sessions (uid, account_id, generation, begun_at, address, browser)
              SELECT $1, id, $3, $4, $5, $6 FROM accounts WHERE id = $2 AND $3::bigint < ${NO_GENERATION}
              ON CONFLICT (uid) DO UPDATE SET generation = greatest(browser_sessions.generation, excluded.generation),
                begun_at = excluded.begun_at, address = excluded.address, browser = excluded.browser
                WHERE browser_sessions.account_id = excluded.account_id
              RETURNING uid
          )
          INSERT INTO session_providers (uid, issuer, subject, sid)
            SELECT uid, $7, $8, $9 FROM session WHERE $7::text IS NOT NULL
            ON CONFLICT (uid, issuer) DO UPDATE SET subject = excluded.subject,
              sid = coalesce(excluded.sid, session_providers.sid)`,
        [
          uid,
          accountId,
          generation,
          begunAt,
          origin.address,
          keptBrowser(origin.browser),
          from?.issuer ?? null,
          from?.subject ?? null,
          from?.sid ?? null,
        ],
      );
    },

    /**
     * Returns sessions that may be active, latest first; only the token store knows whether they are.
     *
     * @param limit 20 by default.
     */
    async of({ id, sessionGeneration, endedSessions }: Account, limit: number = MAX_LISTED): Promise<StartedSession[]> {
      const rows = await database.query<Omit<StartedSession, 'origin'> & Origin>(
        `SELECT uid, begun_at AS "begunAt", address, browser FROM browser_sessions
          WHERE account_id = $1 AND generation >= $2 AND uid <> ALL($3)
          ORDER BY begun_at DESC, uid LIMIT $4`,
        [id, sessionGeneration, endedSessions, limit],
      );
      return rows.map(({ uid, begunAt, ...origin }) => ({ uid, begunAt, origin }));
    },

    /** Finds a session by its public id or its uid, even if it has ended. */
    async find(id: string): Promise<RecordedSession | undefined> {
      const [row] = await database.query<Omit<RecordedSession, 'origin'> & Origin>(
        `SELECT uid, account_id AS "accountId", generation::float8, begun_at AS "begunAt", address, browser
          FROM browser_sessions WHERE ${isSessionId(id) ? PUBLIC_ID_COLUMN : 'uid'} = $1`,
        [id],
      );
      if (!row) return undefined;
      const { uid, accountId, generation, begunAt, ...origin } = row;
      return { uid, accountId, generation, begunAt, origin };
    },

    /**
     * Ends the session from the next request on, on every node and even if a store is restored.
     *
     * @returns false if this account has no such session, or it was ended before.
     */
    async end(accountId: string, uid: string, inTransaction: InTransaction): Promise<boolean> {
      const isEnded = await lockedTransactionOf(database, accountId, async (tx) => {
        if ((await endIn(tx, accountId, [uid])) === 0) return false;
        await inTransaction(tx);
        return true;
      });
      if (isEnded) accounts.forget(accountId);
      return isEnded;
    },

    /**
     * Ends the sessions of which a provider says that their user has signed out there.
     *
     * @param inTransaction runs in the same transaction.
     * @returns undefined for a token that was used before.
     */
    async endAtProvider(
      { issuer, subject, sid, token }: SignOutAtProvider,
      inTransaction: InTransaction<SignedOutAtProvider>,
    ): Promise<SignedOutAtProvider | undefined> {
      const outcome = await database.transaction(async (tx) => {
        // If several requests send the same token, only one of them inserts the row.
        const isNew = await tx.query(
          `INSERT INTO logout_tokens (token_hash, expires_at) VALUES ($1, $2)
            ON CONFLICT DO NOTHING RETURNING 1`,
          [sha256(`${issuer} ${token.id}`), new Date(clock() + token.seconds * 1000)],
        );
        if (isNew.length === 0) return undefined;
        const values = [issuer, subject ?? null, sid ?? null];
        // Also accounts whose sessions have all ended: the provider's sign-out may end more than sessions.
        const theirs = await tx.query<{ id: string }>(
          `SELECT account_id AS id FROM browser_sessions JOIN session_providers USING (uid) WHERE ${SIGNED_OUT}
            UNION SELECT account_id FROM account_identities WHERE issuer = $1 AND subject = $2`,
          values,
        );
        const accountIds = theirs.map(({ id }) => id);
        await lockAccount(tx, ...accountIds);
        const proved = await tx.query<{ uid: string }>(`SELECT uid FROM session_providers WHERE ${SIGNED_OUT}`, values);
        const uids = proved.map(({ uid }) => uid);
        let sessions = 0;
        for (const id of accountIds) sessions += await endIn(tx, id, uids);
        const outcome = { accountIds, sessions };
        await inTransaction(tx, outcome);
        return outcome;
      });
      for (const id of outcome?.accountIds ?? []) accounts.forget(id);
      return outcome;
    },

    removeUsedTokens: expiryJob(parts, [{ table: 'logout_tokens', column: 'expires_at' }]),

    removeOlderThan: (olderThan: Date, limit: number): Promise<number> =>
      deleteExpired(database, [{ table: 'browser_sessions', column: 'begun_at' }], olderThan, limit),
  };
}
