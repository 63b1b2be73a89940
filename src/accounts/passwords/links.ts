/** One-time links with which a person sets a password: for a new account, or a forgotten one. */
import type { Clock } from '../../base/clock.ts';
import { randomId, sha256 } from '../../base/random-id.ts';
import { transactionOf } from '../../storage/account-turns.ts';
import { expiryJob } from '../../storage/cleaning.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import type { Account } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';

/** `confirmed`: made for who has just confirmed elsewhere that it is them, and used at once. */
export type LinkPurpose = 'invitation' | 'forgotten' | 'confirmed';

/** One that works. */
export interface PasswordLink {
  readonly account: Account;
  readonly purpose: LinkPurpose;
}

export interface KeptLink {
  readonly accountId: string;
  readonly purpose: LinkPurpose;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface PasswordLinks {
  /**
   * Makes a link for a day (`confirmed`: ten minutes), beside those that are good already. `token` is
   * kept as a hash only.
   *
   * @param by the operator, or the person, who then made it from somewhere.
   */
  make(
    account: Account,
    purpose: LinkPurpose,
    by: 'operator' | Origin,
  ): Promise<{ token: string; expiresAt: Date }>;
  /** Whose password a link sets, as long as it is good. Looking at it does not use it up. */
  find(token: string): Promise<PasswordLink | undefined>;
  /** A link that is kept, whether it works or not: for the operator. */
  look(token: string): Promise<KeptLink | undefined>;
  /** @returns false for all but one of those who use it at the same moment, and when it is over. */
  use(token: string, tx: Queries): Promise<boolean>;
  /** Uses up every link of an account. */
  forget(accountId: string, tx: Queries): Promise<void>;
  /** Forgets up to `limit` links that are over. @returns how many it were. */
  removeExpired(limit: number): Promise<number>;
}

/** Milliseconds. */
const DAY = 24 * 3_600_000;
const LIFETIME = { invitation: DAY, forgotten: DAY, confirmed: 600_000 };
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export function createPasswordLinks(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly accounts: AccountRegistry;
  readonly activity: Activity;
}): PasswordLinks {
  const { database, clock, accounts, activity } = parts;

  return {
    async make({ id: accountId, email }, purpose, by) {
      const token = randomId('', 43);
      const now = clock();
      const expiresAt = new Date(now + LIFETIME[purpose]);
      await transactionOf(database, accountId, async (tx) => {
        // One that is suspended at this moment gets a link that is dead, as a suspension leaves all.
        // So does one whose address was changed since it was looked up: it goes to the former one.
        await tx.query(
          `INSERT INTO password_links (token_hash, account_id, purpose, created_at, expires_at)
            SELECT $1, id, $3, $4, $5 FROM accounts
            WHERE id = $2 AND suspended_at IS NULL AND email = $6 FOR SHARE`,
          [sha256(token), accountId, purpose, new Date(now), expiresAt, email],
        );
        const who =
          by === 'operator'
            ? ({ actor: 'operator' } as const)
            : ({ actor: 'person', origin: by } as const);
        const details = { purpose };
        await activity.record({ action: 'password_link_made', ...who, accountId, details }, tx);
      });
      return { token, expiresAt };
    },

    async find(token) {
      if (!TOKEN.test(token)) return undefined;
      const [link] = await database.query<{ account_id: string; purpose: LinkPurpose }>(
        'SELECT account_id, purpose FROM password_links WHERE token_hash = $1 AND expires_at > $2',
        [sha256(token), new Date(clock())],
      );
      const account = link && (await accounts.find(link.account_id));
      // Somebody who may not sign in has no use for a password.
      if (!account || account.isSuspended) return undefined;
      return { account, purpose: link.purpose };
    },

    async look(token) {
      if (!TOKEN.test(token)) return undefined;
      const [link] = await database.query<KeptLink>(
        `SELECT account_id AS "accountId", purpose, created_at AS "createdAt",
            expires_at AS "expiresAt" FROM password_links WHERE token_hash = $1`,
        [sha256(token)],
      );
      return link;
    },

    async use(token, tx) {
      // One atomic step: of several that delete the row one gets it back.
      const used = await tx.query(
        'DELETE FROM password_links WHERE token_hash = $1 AND expires_at > $2 RETURNING 1',
        [sha256(token), new Date(clock())],
      );
      return used.length > 0;
    },

    async forget(accountId, tx) {
      await tx.query('DELETE FROM password_links WHERE account_id = $1', [accountId]);
    },

    removeExpired: expiryJob(parts, [{ table: 'password_links', column: 'expires_at' }]),
  };
}
