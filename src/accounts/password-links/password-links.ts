/** One-time links with which a user sets a password, for a new account or after forgetting the old one. */
import type { Clock } from '../../base/clock.ts';
import { isLongId, randomId, sha256 } from '../../base/random-id.ts';
import { transactionOf } from '../../storage/account-turns.ts';
import { expiryJob } from '../../storage/cleaning.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type Account, hasActiveSession } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';

/** `confirmed`: the user has just re-authenticated with a provider, and a redirect opens the password link. */
export type LinkPurpose = 'invitation' | 'forgotten' | 'confirmed';

export interface KeptLink {
  readonly accountId: string;
  readonly purpose: LinkPurpose;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** False if the session in which the link was created has ended. */
  readonly hasSession: boolean;
}

export type PasswordLinks = ReturnType<typeof createPasswordLinks>;

const DAY_MS = 24 * 3_600_000;
const LIFETIMES_MS = { invitation: DAY_MS, forgotten: DAY_MS, confirmed: 600_000 };

/** SQL: the link was created without a session, or its session has not ended. */
const HAS_SESSION = `(session_uid IS NULL OR EXISTS (SELECT FROM accounts WHERE id = password_links.account_id
    AND ${hasActiveSession('password_links.session_uid', 'password_links.session_generation')}))`;
/** SQL: the link `$1` has not expired at `$2`, and its session, if it has one, has not ended. */
const IS_VALID = `token_hash = $1 AND expires_at > $2 AND ${HAS_SESSION}`;

export function createPasswordLinks(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly accounts: AccountRegistry;
  readonly activity: Activity;
}) {
  const { database, clock, accounts, activity } = parts;

  return {
    /**
     * Creates a link that is valid for a day. A link with the purpose `confirmed` is valid for ten minutes, but not
     * after the session in `by` has ended. Earlier links stay valid. Only a hash of `token` is stored.
     *
     * @throws SessionEnded
     */
    async make(
      { id: accountId, email }: Account,
      purpose: LinkPurpose,
      by: 'operator' | Origin,
    ): Promise<{ token: string; expiresAt: Date }> {
      const token = randomId('', 43);
      const session = purpose === 'confirmed' && by !== 'operator' ? by.session : undefined;
      const now = clock();
      const expiresAt = new Date(now + LIFETIMES_MS[purpose]);
      await transactionOf(database, accountId, async (tx) => {
        // Create no valid link if the account has just been suspended (a suspension ends all links), or if its address
        // has changed since the look-up, because the mail goes to the former address.
        await tx.query(
          `INSERT INTO password_links (token_hash, account_id, purpose, created_at, expires_at,
              session_uid, session_generation)
            SELECT $1, id, $3, $4, $5, $7, $8 FROM accounts
            WHERE id = $2 AND suspended_at IS NULL AND email = $6 FOR SHARE`,
          [
            sha256(token),
            accountId,
            purpose,
            new Date(now),
            expiresAt,
            email,
            session?.uid ?? null,
            session?.generation ?? null,
          ],
        );
        const who = by === 'operator' ? ({ actor: 'operator' } as const) : ({ actor: 'person', origin: by } as const);
        const details = { purpose };
        await activity.record({ action: 'password_link_made', ...who, accountId, details }, tx);
      });
      return { token, expiresAt };
    },

    /** Returns a valid link with its account. Does not use up the link. */
    async find(token: string): Promise<{ account: Account; purpose: LinkPurpose } | undefined> {
      if (!isLongId(token)) return undefined;
      const [link] = await database.query<{ account_id: string; purpose: LinkPurpose }>(
        `SELECT account_id, purpose FROM password_links WHERE ${IS_VALID}`,
        [sha256(token), new Date(clock())],
      );
      const account = link && (await accounts.find(link.account_id));
      if (!account || account.isSuspended) return undefined;
      return { account, purpose: link.purpose };
    },

    /** For operators: returns a stored link, even if it has expired or its session has ended. */
    async look(token: string): Promise<KeptLink | undefined> {
      if (!isLongId(token)) return undefined;
      const [link] = await database.query<KeptLink>(
        `SELECT account_id AS "accountId", purpose, created_at AS "createdAt",
            expires_at AS "expiresAt", ${HAS_SESSION} AS "hasSession" FROM password_links WHERE token_hash = $1`,
        [sha256(token)],
      );
      return link;
    },

    /** Returns true for only one of several parallel calls; false for a used or expired link. */
    async use(token: string, tx: Queries): Promise<boolean> {
      const used = await tx.query(`DELETE FROM password_links WHERE ${IS_VALID} RETURNING 1`, [
        sha256(token),
        new Date(clock()),
      ]);
      return used.length > 0;
    },

    async forget(accountId: string, tx: Queries): Promise<void> {
      await tx.query('DELETE FROM password_links WHERE account_id = $1', [accountId]);
    },

    removeExpired: expiryJob(parts, [{ table: 'password_links', column: 'expires_at' }]),
  };
}
