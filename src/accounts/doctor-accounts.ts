/** Accounts that the command `doctor` creates to test the service, and deletes with their log. */
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, DOCTOR_EMAIL_PATTERN, SELECT_ACCOUNTS } from './account.ts';
import type { AddAccount } from './account-registry.ts';

const IN_USE_MS = 3_600_000;

export function createDoctorAccounts(parts: {
  readonly database: Database;
  readonly accounts: { readonly add: AddAccount };
  readonly clock: Clock;
}) {
  const { database, accounts, clock } = parts;
  return {
    /** Adds an account that can sign in, but has access to nothing. */
    async add(): Promise<{ account: Account; password: string }> {
      const password = randomId('', 43);
      const email = DOCTOR_EMAIL_PATTERN.replace('%', randomId('', 16));
      // Do not record this account, which has no access: the audit log has a record of each run of `doctor`.
      return {
        account: await accounts.add({ email, name: 'Gatehouse doctor', password }),
        password,
      };
    },

    /** Returns accounts older than an hour. A running `doctor` command may use a younger account. */
    async leftOver(): Promise<Account[]> {
      const rows = await database.query<AccountRow>(
        `${SELECT_ACCOUNTS} WHERE email LIKE $1 AND created_at < $2 ORDER BY created_at`,
        [DOCTOR_EMAIL_PATTERN, new Date(clock() - IN_USE_MS)],
      );
      return rows.map(accountFrom);
    },

    /**
     * Deletes an account that `doctor` created, with its log. Keeps accounts of users and accounts that were given
     * access: their log may be needed. Delete the account's clients first.
     *
     * @returns true if the account was deleted
     */
    remove: (id: string, inTransaction?: InTransaction): Promise<boolean> =>
      database.transaction(async (tx) => {
        const removed = await tx.query(
          `DELETE FROM accounts WHERE id = $1 AND email LIKE $2
            AND NOT EXISTS (SELECT FROM organization_memberships WHERE account_id = $1)
            RETURNING 1`,
          [id, DOCTOR_EMAIL_PATTERN],
        );
        if (removed.length === 0) return false;
        await tx.query('DELETE FROM activity WHERE account_id = $1', [id]);
        await inTransaction?.(tx);
        return true;
      }),
  };
}
