/** Changes passwords, of signed-in users or through one-time links. */
import type { InTransaction, Queries } from '../../storage/queries.ts';
import { ACCOUNT_COLUMNS, type Account, type AccountRow, accountFrom } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import { hashPassword, refusePassword } from '../passwords/password.ts';
import { type MethodChange, removesLink } from '../sign-in-methods.ts';
import type { LinkPurpose, PasswordLinks } from './password-links.ts';

export type PasswordChanges = ReturnType<typeof createPasswordChanges>;

export interface Recovered {
  readonly account: Account;
  readonly purpose: LinkPurpose;
}

/** What the user of a one-time link may choose to end, besides replacing the password. */
export interface RecoveryStep {
  readonly methods: readonly string[];
  /** Runs in the transaction of the change. If a signed-in user makes it, no link is used, so `purpose` is absent. */
  readonly run: InTransaction<Pick<Recovered, 'account'> & Partial<Recovered>>;
}

interface Change {
  readonly origin: Origin;
  /** The new password; absent to keep the current one. */
  readonly password?: string;
  /** The purpose of the link that authenticated the user; absent if the user is signed in. */
  readonly purpose?: LinkPurpose;
  readonly methods?: readonly string[] | undefined;
  readonly isAllowed: (tx: Queries) => Promise<boolean>;
  readonly inTransaction: InTransaction<Account> | undefined;
}

/** Each change ends every browser session of the account and deletes the one-time links of the account. */
export function createPasswordChanges(parts: {
  readonly accounts: Pick<AccountRegistry, 'forget'> & { readonly changeMethods: MethodChange };
  readonly links: PasswordLinks;
  readonly activity: Activity;
}) {
  const { accounts, links, activity } = parts;
  /** Maps a link's token to a promise that settles when the last pending use of the link has ended. */
  const inUse = new Map<string, Promise<unknown>>();

  async function change(
    { id, email, name }: Account,
    { origin, password, purpose, methods = [], isAllowed, inTransaction }: Change,
  ): Promise<Account | undefined> {
    if (password !== undefined) await refusePassword(password, { email, name });
    const { address } = origin;
    const passwordHash =
      password === undefined ? null : await hashPassword(password, { rank: 'known', email, address });
    // Lock the account first, so that two of its links cannot be used at the same time.
    const changed = await accounts.changeMethods(id, removesLink(methods), async (tx) => {
      if (!(await isAllowed(tx))) return undefined;
      if (passwordHash !== null) {
        const details = purpose === undefined ? {} : { purpose };
        const who = { actor: 'person', accountId: id, origin } as const;
        // Record the change before making it, because it ends the session that requested it.
        await activity.record({ action: 'password_changed', ...who, details }, tx);
      }
      const [row] = await tx.query<AccountRow>(
        `UPDATE accounts SET password_hash = coalesce($2, password_hash),
            session_generation = session_generation + 1
          WHERE id = $1
          RETURNING ${ACCOUNT_COLUMNS}`,
        [id, passwordHash],
      );
      await links.forget(id, tx);
      if (!row) return undefined;
      const account = accountFrom(row);
      await inTransaction?.(tx, account);
      return account;
    });
    accounts.forget(id);
    return changed;
  }

  /**
   * Runs the uses of a link one after the other. After a success, the next use finds no link and hashes no password.
   *
   * @param how the origin and the new password; without a password, the link alone authenticates the user
   * @returns undefined if the link is not valid; only one of several parallel uses succeeds
   * @throws Refusal `password_refused`, TooManyPasswords; the link then stays valid
   */
  function useLink(
    token: string,
    how: Pick<Change, 'origin' | 'password'>,
    step?: RecoveryStep,
  ): Promise<Recovered | undefined> {
    const earlier = inUse.get(token);
    const use = (async () => {
      await earlier?.catch(() => {});
      const link = await links.find(token);
      if (!link) return undefined;
      const { purpose } = link;
      // Without passwords, refuse a mailed link: it was sent when the service still had passwords.
      if (purpose === 'forgotten' && how.password === undefined) return undefined;
      const account = await change(link.account, {
        ...how,
        purpose,
        methods: step?.methods,
        isAllowed: (tx) => links.use(token, tx),
        inTransaction: async (tx, changed) => step?.run(tx, { account: changed, purpose }),
      });
      return account && { account, purpose };
    })();
    inUse.set(token, use);
    return use.finally(() => {
      if (inUse.get(token) === use) inUse.delete(token);
    });
  }

  return {
    /**
     * The caller must have authenticated the user. The password is not changed if a recovery ends the session in
     * `origin` while this call waits.
     *
     * @throws Refusal `password_refused`; SessionEnded, TooManyPasswords
     */
    async change(
      account: Account,
      password: string,
      origin: Origin,
      inTransaction?: InTransaction<Account>,
    ): Promise<Account> {
      const isAllowed = async (): Promise<boolean> => true;
      const changed = await change(account, { origin, password, isAllowed, inTransaction });
      if (!changed) throw new Error(`the account ${account.id} no longer exists`);
      return changed;
    },

    useLink,
  };
}
