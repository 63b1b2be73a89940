/** Edits of an account that reach further than its row: another address, and its end. */
import { Refusal, refuseViolations } from '../base/refusal.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, isAccountId } from './account.ts';
import { emailKey, keyEmails, newEmailProblem, normalizeEmail } from './email.ts';

export type AccountEdits = ReturnType<typeof createAccountEdits>;

export function createAccountEdits({
  database,
  change,
  forget,
}: {
  readonly database: Database;
  /** Changes the row; `alongside` runs in the same transaction. */
  readonly change: (
    id: string,
    assignments: string,
    values: readonly unknown[],
    alongside: Alongside<Account>,
  ) => Promise<Account>;
  readonly forget: (id: string) => void;
}) {
  return {
    /**
     * From the next sign-in on the person has this address, and links that were sent to the former one
     * are over. Another account that had the former one as well can sign in with it.
     *
     * @throws Refusal `account_unknown`, `email_invalid`, `email_ambiguous` or `email_taken`
     */
    async changeEmail(
      id: string,
      entered: string,
      alongside?: Alongside<Account>,
    ): Promise<Account> {
      const email = acceptedEmail(entered);
      const taken = () => takenEmail(email);
      const changed = await refuseViolations(
        { accounts_email_key: taken, accounts_email_key_key: taken },
        change(id, 'email = $2', [email], async (tx) => {
          // In a statement of its own: the one that changes an address forgets the key (migration 0027).
          const [row] = await tx.query<AccountRow>(
            'UPDATE accounts SET email_key = $2 WHERE id = $1 RETURNING *',
            [id, emailKey(email)],
          );
          await tx.query('DELETE FROM password_links WHERE account_id = $1', [id]);
          if (row) await alongside?.(tx, accountFrom(row));
        }),
      );
      // The former address may be that of somebody who could not sign in by it.
      await keyEmails(database);
      return { ...changed, isEmailTaken: false };
    },

    /**
     * Erases the person: account, memberships, connections, API keys and links go, and nothing issued
     * for them counts from the next request on. Their log stays under the id, without where they were.
     *
     * @throws Refusal `account_unknown` or `account_owns_clients`
     */
    async remove(id: string, alongside?: Alongside<Account>): Promise<Account> {
      if (!isAccountId(id)) throw unknownAccount(id);
      const removed = await refuseViolations(
        { clients_owner_account_id_fkey: () => ownerOfClients(id) },
        database.transaction(async (tx) => {
          // Everything that stands on the account goes with it, and each node is told of each row.
          const [row] = await tx.query<AccountRow>(
            'DELETE FROM accounts WHERE id = $1 RETURNING *',
            [id],
          );
          if (row === undefined) throw unknownAccount(id);
          await tx.query(
            `UPDATE activity SET address = NULL, browser = NULL, details = details - ARRAY['api_key_name', 'subject']
              WHERE account_id = $1`,
            [id],
          );
          await tx.query(FORGET_NAME_ELSEWHERE, [id]);
          await alongside?.(tx, accountFrom(row));
          return accountFrom(row);
        }),
      );
      forget(id);
      await keyEmails(database);
      return removed;
    },
  };
}

/** In the logs of those with whom the person ended something, or they with the person. */
const FORGET_NAME_ELSEWHERE = `
  UPDATE activity SET details = details
      - CASE WHEN details ->> 'by_account_id' = $1 THEN 'by_name' ELSE 'person_name' END
    WHERE action IN ('membership_removed', 'member_removed', 'client_barred', 'client_admitted')
      AND (details ->> 'by_account_id' = $1 OR details ->> 'person_id' = $1)`;

/** @throws Refusal `email_invalid` or `email_ambiguous` */
export function acceptedEmail(entered: string): string {
  const email = normalizeEmail(entered);
  const problem = email === undefined ? {} : newEmailProblem(email);
  if (email !== undefined && problem === undefined) return email;
  throw problem?.other === undefined
    ? invalidEmail(entered)
    : ambiguousEmail(email ?? entered, problem.other);
}

function ownerOfClients(id: string): Refusal {
  return new Refusal(
    'account_owns_clients',
    `The account ${id} owns clients.`,
    'Find them with `clients list --owner`, and give them away (`clients transfer`) or delete them first.',
  );
}

function invalidEmail(entered: string): Refusal {
  const shown = JSON.stringify(entered.slice(0, 100));
  return new Refusal(
    'email_invalid',
    `${shown} is not an email address.`,
    'Write one like ada@example.com.',
  );
}

function ambiguousEmail(email: string, other: string): Refusal {
  return new Refusal(
    'email_ambiguous',
    `The email address ${email} has characters that stand for others: it is taken for ${other}.`,
    `Write ${other}, if mail to that address reaches the person, or use another one.`,
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
  return new Refusal(
    'account_unknown',
    `There is no account ${id}.`,
    'List the accounts to find it.',
  );
}
