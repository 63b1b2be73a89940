/** Changes of accounts by commands and pages. An older line of another system cannot undo these changes. */
import { type Account, isAccountId, readAccount } from '../accounts/account.ts';
import { createAccountRegistry, type NewAccount, unknownAccount } from '../accounts/account-registry.ts';
import { displayName } from '../accounts/display-name.ts';
import { newEmailProblem, normalizeEmail } from '../accounts/email.ts';
import { type Identity, removeLink } from '../accounts/identities/identities.ts';
import { hashPassword, refusePassword } from '../accounts/passwords/password.ts';
import { endSessionsIn, type MethodChange } from '../accounts/sign-in-methods.ts';
import { randomId } from '../base/random-id.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import { lockAccount, lockedTransactionOf } from '../storage/account-turns.ts';
import type { InTransaction, Queries } from '../storage/queries.ts';
import type { Change } from './change.ts';
import type { Changes } from './engine.ts';
import { recordUnlinked } from './times.ts';

export type Accounts = ReturnType<typeof createAccounts>;

export function createAccounts(
  parts: Parameters<typeof createAccountRegistry>[0] & {
    readonly engine: Changes;
  },
) {
  const { database, engine } = parts;
  const registry = createAccountRegistry(parts);

  async function change(
    id: string,
    what: Pick<Change, 'set' | 'end'>,
    inTransaction?: InTransaction<Account>,
  ): Promise<Account> {
    if (!isAccountId(id)) throw unknownAccount(id);
    const taken = () => takenEmail(`${what.set?.email}`);
    const changed = await refuseViolations(
      { accounts_email_key_key: taken },
      engine.transaction(async (tx, now) => {
        const before = await readAccount(tx, id);
        if (before === undefined) throw unknownAccount(id);
        const { problems } = await engine.make(tx, now, [{ type: 'account', id, ...what }]);
        if (problems.length > 0) throw taken();
        const account = (await readAccount(tx, id)) ?? before;
        await inTransaction?.(tx, account);
        return account;
      }),
    );
    registry.forget(id);
    return changed;
  }

  const changeMethods: MethodChange = (id, removesLink, work) => {
    /** @param now the time to record; absent if the transaction does not have the lock that serializes changes */
    async function change(tx: Queries, now?: Date) {
      const before = await issuersOf(tx, id);
      const result = await work(tx);
      const left = new Set(await issuersOf(tx, id));
      const lost = before.filter((issuer) => !left.has(issuer));
      if (lost.length === 0) return result;
      if (now === undefined) throw new Error('a link was removed by a change that removes no link');
      await recordUnlinked(tx, now, id, lost);
      return result;
    }
    if (!removesLink) return lockedTransactionOf(database, id, (tx) => change(tx));
    return database.inTurn(id, () =>
      engine.transaction(async (tx, now) => {
        await lockAccount(tx, id);
        return change(tx, now);
      }),
    );
  };

  return {
    ...registry,

    /**
     * Adds an account. If another system sends an older line about this account, the line only sets the external id.
     *
     * @throws Refusal `email_invalid`, `email_ambiguous`, `email_taken`, `name_invalid` or `password_refused`
     */
    async add(
      { email: entered, name: enteredName, password }: NewAccount,
      inTransaction?: InTransaction<Account>,
    ): Promise<Account> {
      const email = acceptedEmail(entered);
      const name = displayName(enteredName);
      if (password !== undefined) await refusePassword(password, { email, name });
      const password_hash = password === undefined ? null : await hashPassword(password, { rank: 'known', email });
      const id = randomId('acc_', 16);
      const taken = () => takenEmail(email);
      return refuseViolations(
        { accounts_email_key_key: taken },
        engine.transaction(async (tx, now) => {
          const added: Change = { type: 'account', id, adds: true, set: { email, name, password_hash } };
          await engine.make(tx, now, [added]);
          const account = await readAccount(tx, id);
          if (account === undefined) throw taken();
          await inTransaction?.(tx, account);
          return account;
        }),
      );
    },

    /**
     * Refuses the user and all their clients from the next request on. No import ends the suspension.
     *
     * @throws Refusal `account_unknown`
     */
    suspend: (id: string, inTransaction?: InTransaction<Account>) =>
      change(id, { set: { suspended: true } }, inTransaction),

    /** @throws Refusal `account_unknown` */
    resume: (id: string, inTransaction?: InTransaction<Account>) =>
      change(id, { set: { suspended: false } }, inTransaction),

    /** @throws Refusal `account_unknown` or `name_invalid` */
    rename: async (id: string, name: string, inTransaction?: InTransaction<Account>) =>
      change(id, { set: { name: displayName(name) } }, inTransaction),

    /**
     * Changes the address for future sign-ins, and ends links that were sent to the former address.
     *
     * @throws Refusal `account_unknown`, `email_invalid`, `email_ambiguous` or `email_taken`
     */
    changeEmail: async (id: string, entered: string, inTransaction?: InTransaction<Account>) =>
      change(id, { set: { email: acceptedEmail(entered) } }, inTransaction),

    /**
     * Deletes the account with its memberships, connections, API keys and links. From the next request on, nothing that
     * was issued for the user is accepted. The log keeps the account's id, but no addresses, browsers, names of API
     * keys and ids at providers.
     * @throws Refusal `account_unknown` or `account_owns_clients`
     */
    remove: (id: string, inTransaction?: InTransaction<Account>): Promise<Account> =>
      refuseViolations(
        { clients_owner_account_id_fkey: () => ownerOfClients(id) },
        change(id, { end: 'deleted' }, inTransaction),
      ),

    changeMethods,

    /** Removes the link with a provider and ends every session of the user. @returns true if there was a link */
    unlink: (id: string, issuer: string, inTransaction: InTransaction<Identity>): Promise<boolean> =>
      changeMethods(id, true, async (tx) => {
        const gone = await removeLink(tx, id, issuer);
        if (gone === undefined) return false;
        await endSessionsIn(tx, id);
        await inTransaction(tx, gone);
        return true;
      }),
  };
}

const issuersOf = async (tx: Queries, id: string): Promise<string[]> =>
  (await tx.query<{ issuer: string }>('SELECT issuer FROM account_identities WHERE account_id = $1', [id])).map(
    ({ issuer }) => issuer,
  );

/** @throws Refusal `email_invalid` or `email_ambiguous` */
function acceptedEmail(entered: string): string {
  const email = normalizeEmail(entered);
  if (email === undefined) throw invalidEmail(entered);
  const problem = newEmailProblem(email);
  if (problem === undefined) return email;
  throw problem.other === undefined ? invalidEmail(entered) : ambiguousEmail(email, problem.other);
}

const ownerOfClients = (id: string): Refusal =>
  new Refusal(
    'account_owns_clients',
    `The account ${id} owns clients.`,
    'Find these clients with `clients list --owner`, then transfer (`clients transfer`) or delete them.',
  );

function invalidEmail(entered: string): Refusal {
  const shown = JSON.stringify(entered.slice(0, 100));
  return new Refusal('email_invalid', `${shown} is not an email address.`, 'Write one like ada@example.com.');
}

const ambiguousEmail = (email: string, other: string): Refusal =>
  new Refusal(
    'email_ambiguous',
    `The email address ${email} has characters that are normalized: it means the same as ${other}.`,
    `Write ${other}, if mail to that address reaches the person, or use another address.`,
  );

const takenEmail = (email: string): Refusal =>
  new Refusal(
    'email_taken',
    `There is already an account with the email address ${email}.`,
    'Use that account, or another address.',
  );
