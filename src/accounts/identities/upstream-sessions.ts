/** Stores which sessions began at a provider, so that a sign-out there also ends them here. */
import type { Clock } from '../../base/clock.ts';
import { sha256 } from '../../base/random-id.ts';
import { expiryJob } from '../../storage/cleaning.ts';
import type { Database, InTransaction } from '../../storage/queries.ts';
import type { Identity } from './identities.ts';

/** The accounts whose sessions a sign-out at a provider ended. */
interface EndedElsewhere {
  readonly accountIds: readonly string[];
  readonly sessions: number;
}

interface LogoutElsewhere {
  readonly issuer: string;
  readonly subject: string | undefined;
  readonly sid: string | undefined;
  readonly token: { readonly id: string; readonly seconds: number };
}

export type UpstreamSessions = ReturnType<typeof createUpstreamSessions>;

export function createUpstreamSessions(parts: { readonly database: Database; readonly clock: Clock }) {
  const { database, clock } = parts;
  const after = (seconds: number): Date => new Date(clock() + seconds * 1000);

  return {
    /** Must be called before the session is stored, so that `isNoted` can check for a sign-out. */
    async record(
      uid: string,
      { issuer, subject, sid }: Identity & { readonly sid: string | undefined },
      seconds: number,
    ): Promise<void> {
      await database.query(
        `INSERT INTO upstream_sessions (uid, issuer, subject, sid, expires_at)
          VALUES ($1, $2, $3, $4, $5)`,
        [uid, issuer, subject, sid ?? null, after(seconds)],
      );
    },

    /** Moves the record of `uid` to its successor `to`. @returns false if `uid` was ended. */
    async move(uid: string, to: string, seconds: number): Promise<boolean> {
      const moved = await database.query(
        `UPDATE upstream_sessions SET uid = $2, expires_at = $3
          WHERE uid = $1 AND ended_at IS NULL RETURNING 1`,
        [uid, to, after(seconds)],
      );
      return moved.length > 0;
    },

    /** Call this after storing the session. False means that the user has signed out: end it. */
    async isNoted(uid: string): Promise<boolean> {
      const rows = await database.query('SELECT FROM upstream_sessions WHERE uid = $1 AND ended_at IS NULL', [uid]);
      return rows.length > 0;
    },

    /**
     * Ends our sessions that began with the session `sid` at the provider or, if it is undefined,
     * with any session of this user there. `finishEnded` then removes them from the token store.
     *
     * @param token accepted only once.
     * @param inTransaction runs in the same transaction.
     * @returns undefined for a token that was used before.
     */
    end: (
      { issuer, subject, sid, token }: LogoutElsewhere,
      inTransaction: InTransaction<EndedElsewhere>,
    ): Promise<EndedElsewhere | undefined> =>
      database.transaction(async (tx) => {
        // If several requests send the same token, only one of them inserts the row.
        const isNew = await tx.query(
          `INSERT INTO logout_tokens (token_hash, expires_at) VALUES ($1, $2)
            ON CONFLICT DO NOTHING RETURNING 1`,
          [sha256(`${issuer} ${token.id}`), after(token.seconds)],
        );
        if (isNew.length === 0) return undefined;
        const ended = await tx.query<{ subject: string }>(
          `UPDATE upstream_sessions SET ended_at = ${tx.now()}
            WHERE issuer = $1 AND ($2::text IS NULL OR subject = $2)
              AND ($3::text IS NULL OR sid = $3) AND ended_at IS NULL
            RETURNING subject`,
          [issuer, subject ?? null, sid ?? null],
        );
        const subjects = new Set(ended.map((row) => row.subject));
        if (subject !== undefined) subjects.add(subject);
        const linked = await tx.query<{ account_id: string }>(
          'SELECT account_id FROM account_identities WHERE issuer = $1 AND subject = ANY($2)',
          [issuer, [...subjects]],
        );
        const accountIds = linked.map(({ account_id: accountId }) => accountId);
        const outcome = { accountIds, sessions: ended.length };
        await inTransaction(tx, outcome);
        return outcome;
      }),

    /** @param endSession receives the uid. @returns the number of ended sessions, at most `limit`. */
    async finishEnded(endSession: (uid: string) => Promise<void>, limit: number): Promise<number> {
      const ended = await database.query<{ uid: string }>(
        `SELECT uid FROM upstream_sessions WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT $1`,
        [limit],
      );
      // Use no transaction: in the embedded database the token store would wait for its end.
      for (const { uid } of ended) await endSession(uid);
      if (ended.length > 0) {
        await database.query('DELETE FROM upstream_sessions WHERE uid = ANY($1)', [ended.map(({ uid }) => uid)]);
      }
      return ended.length;
    },

    removeExpired: expiryJob(parts, [
      { table: 'upstream_sessions', column: 'expires_at' },
      { table: 'logout_tokens', column: 'expires_at' },
    ]),
  };
}
