/** Changes of an account that also affect other rows: a new email address, or its deletion. */
import { Refusal, refuseViolations } from '../base/refusal.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { ACCOUNT_COLUMNS, type Account, type AccountRow, accountFrom, isAccountId } from './account.ts';
import { emailKey, newEmailProblem, normalizeEmail } from './email.ts';
import { eraseFromLog } from './erasure.ts';
import { knownChange, type NamedRow, recordDeletion } from './known-times.ts';

export type AccountEdits = ReturnType<typeof createAccountEdits>;

/** Changes the row and records the time; `inTransaction` runs in the same transaction. */
export type AccountChange = (
  id: string,
  assignments: string,
  values: readonly unknown[],
  inTransaction?: InTransaction<Account>,
) => Promise<Account>;

export function createAccountEdits({
  database,
  change,
  forget,
}: {
  readonly database: Database;
  readonly change: AccountChange;
  readonly forget: (id: string) => void;
}) {
  return {
    /**
     * Changes the address for future sign-ins, and ends links that were sent to the former address.
     *
     * @throws Refusal `account_unknown`, `email_invalid`, `email_ambiguous` or `email_taken`
     */
    async changeEmail(id: string, entered: string, inTransaction?: InTransaction<Account>): Promise<Account> {
      const email = acceptedEmail(entered);
      return refuseViolations(
        { accounts_email_key_key: () => takenEmail(email) },
        change(id, 'email = $2, email_key = $3', [email, emailKey(email)], async (tx, changed) => {
          await tx.query('DELETE FROM password_links WHERE account_id = $1', [id]);
          await inTransaction?.(tx, changed);
        }),
      );
    },

    /**
     * Deletes the account with its memberships, connections, API keys and links: nothing issued for
     * the user is accepted from the next request on. The log stays under the id, without addresses,
     * browsers, names of API keys and ids at providers.
     *
     * @throws Refusal `account_unknown` or `account_owns_clients`
     */
    async remove(id: string, inTransaction?: InTransaction<Account>): Promise<Account> {
      if (!isAccountId(id)) throw unknownAccount(id);
      const removed = await refuseViolations(
        { clients_owner_account_id_fkey: () => ownerOfClients(id) },
        knownChange(database, id, async (tx, at) => {
          const named = 'SELECT id, external_id, email_key AS email FROM accounts WHERE id = $1';
          await recordDeletion(tx, at, 'account', await tx.query<NamedRow>(named, [id]));
          const [account] = await deleteAccounts(tx, [id]);
          if (account === undefined) throw unknownAccount(id);
          await inTransaction?.(tx, account);
          return account;
        }),
      );
      forget(id);
      return removed;
    },
  };
}

/** Deletes accounts within the transaction `tx`. Returns the deleted ones; unknown ids are skipped. */
export async function deleteAccounts(tx: Queries, ids: readonly string[]): Promise<Account[]> {
  const deleted: Account[] = [];
  // With each account the database deletes many other rows: one statement for all accounts could
  // exceed the time limit.
  for (const id of ids) {
    const rows = await tx.query<AccountRow>(`DELETE FROM accounts WHERE id = $1 RETURNING ${ACCOUNT_COLUMNS}`, [id]);
    deleted.push(...rows.map(accountFrom));
  }
  await eraseFromLog(
    tx,
    deleted.map(({ id }) => id),
  );
  return deleted;
}

/** @throws Refusal `email_invalid` or `email_ambiguous` */
export function acceptedEmail(entered: string): string {
  const email = normalizeEmail(entered);
  const problem = email === undefined ? {} : newEmailProblem(email);
  if (email !== undefined && problem === undefined) return email;
  throw problem?.other === undefined ? invalidEmail(entered) : ambiguousEmail(email ?? entered, problem.other);
}

function ownerOfClients(id: string): Refusal {
  return new Refusal(
    'account_owns_clients',
    `The account ${id} owns clients.`,
    'Find these clients with `clients list --owner`, then transfer (`clients transfer`) or delete ' + 'them.',
  );
}

function invalidEmail(entered: string): Refusal {
  const shown = JSON.stringify(entered.slice(0, 100));
  return new Refusal('email_invalid', `${shown} is not an email address.`, 'Write one like ada@example.com.');
}

function ambiguousEmail(email: string, other: string): Refusal {
  return new Refusal(
    'email_ambiguous',
    `The email address ${email} has characters that are normalized: it means the same as ` + `${other}.`,
    `Write ${other}, if mail to that address reaches the person, or use another address.`,
  );
}

export function takenEmail(email: string): Refusal {
  return new Refusal(
    'email_taken',
    `There is already an account with the email address ${email}.`,
    'Use that account, or another address.',
  );
}

export function unknownAccount(id: string): Refusal {
  return new Refusal('account_unknown', `There is no account ${id}.`, 'See the list of accounts.');
}
