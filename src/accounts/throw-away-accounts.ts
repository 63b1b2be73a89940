/** Accounts that the doctor makes to try the service out, and deletes with their log. */
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from './account.ts';
import type { AccountRegistry } from './account-registry.ts';

/** RFC 2606 §2: no mail ever arrives at `.invalid`, so no user has such an address. */
export const THROW_AWAY = 'doctor-%@gatehouse.invalid';
const IN_USE_MS = 3_600_000;

export function createThrowAwayAccounts(parts: {
  readonly database: Database;
  readonly accounts: AccountRegistry;
  readonly clock: Clock;
}) {
  const { database, accounts, clock } = parts;
  return {
    /** Adds an account that can sign in and has access to nothing. */
    async add(): Promise<{ account: Account; password: string }> {
      const password = randomId('', 43);
      const email = THROW_AWAY.replace('%', randomId('', 16));
      // Not in the audit log: no access is given, and the doctor's own record remains.
      return {
        account: await accounts.add({ email, name: 'Gatehouse doctor', password }),
        password,
      };
    },

    /** Returns accounts that were left behind more than an hour ago: younger ones may be in use. */
    async leftOver(): Promise<Account[]> {
      const rows = await database.query<AccountRow>(
        `${SELECT_ACCOUNTS} WHERE email LIKE $1 AND created_at < $2 ORDER BY created_at`,
        [THROW_AWAY, new Date(clock() - IN_USE_MS)],
      );
      return rows.map(accountFrom);
    },

    /**
     * Deletes the account with its log. Does not touch accounts of users, nor one that was given
     * access to something, because then its log could matter. Its clients must be deleted before.
     *
     * @returns true if it was deleted.
     */
    remove: (id: string, inTransaction?: InTransaction): Promise<boolean> =>
      database.transaction(async (tx) => {
        const removed = await tx.query(
          `DELETE FROM accounts WHERE id = $1 AND email LIKE $2
            AND NOT EXISTS (SELECT FROM organization_memberships WHERE account_id = $1)
            RETURNING 1`,
          [id, THROW_AWAY],
        );
        if (removed.length === 0) return false;
        await tx.query('DELETE FROM activity WHERE account_id = $1', [id]);
        await inTransaction?.(tx);
        return true;
      }),
  };
}
