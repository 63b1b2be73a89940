/** How a person gets another password: one that they choose signed in, or through a one-time link. */

import { lockedTransactionOf } from '../../storage/account-turns.ts';
import type { Alongside, Database, Queries } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import type { LinkPurpose, PasswordLinks } from './links.ts';
import { hashPassword, refusePassword } from './password.ts';
import { RecoveryMustWait, type RecoveryWaits } from './recovery-waits.ts';

export type PasswordChanges = ReturnType<typeof createPasswordChanges>;

export interface Recovered {
  readonly account: Account;
  readonly purpose: LinkPurpose;
}

interface Change {
  readonly origin: Origin;
  /** Absent where it stays as it is. */
  readonly password?: string;
  /** How it is known that it is them. */
  readonly purpose?: LinkPurpose;
  /** Asked in the transaction. */
  readonly isAllowed: (tx: Queries) => Promise<boolean>;
  readonly alongside: Alongside<Account> | undefined;
}

/** Each change ends every browser session of the account and uses up its links. */
export function createPasswordChanges(parts: {
  readonly database: Database;
  readonly accounts: AccountRegistry;
  readonly links: PasswordLinks;
  readonly activity: Activity;
  readonly recoveryWaits: Pick<RecoveryWaits, 'mustWait'>;
}) {
  const { database, accounts, links, activity, recoveryWaits } = parts;
  /** Of each link that is being used, when the last one of its uses so far is over. */
  const inUse = new Map<string, Promise<unknown>>();

  async function change(
    { id, email, name }: Account,
    { origin, password, purpose, isAllowed, alongside }: Change,
  ): Promise<Account | undefined> {
    if (password !== undefined) await refusePassword(password, { email, name });
    const { address } = origin;
    const passwordHash =
      password === undefined
        ? null
        : await hashPassword(password, { rank: 'known', email, address });
    // Locked first, so that two links of one account are used one after the other.
    const changed = await lockedTransactionOf(database, id, async (tx) => {
      if (!(await isAllowed(tx))) return undefined;
      if (passwordHash !== null) {
        const details = purpose === undefined ? {} : { purpose };
        const who = { actor: 'person', accountId: id, origin } as const;
        // Before the change ends the session that it is asked for in.
        await activity.record({ action: 'password_changed', ...who, details }, tx);
      }
      const [row] = await tx.query<AccountRow>(
        `UPDATE accounts SET password_hash = coalesce($2, password_hash),
            session_generation = session_generation + 1
          WHERE id = $1
          RETURNING *`,
        [id, passwordHash],
      );
      await links.forget(id, tx);
      if (!row) return undefined;
      const account = accountFrom(row);
      await alongside?.(tx, account);
      return account;
    });
    accounts.forget(id);
    return changed;
  }

  /** One use after another, so that those behind the one that counts find no link to hash for. */
  function useInTurn(
    token: string,
    how: Omit<Change, 'isAllowed' | 'purpose'>,
  ): Promise<Recovered | undefined> {
    const earlier = inUse.get(token);
    const use = (async () => {
      await earlier?.catch(() => {});
      const link = await links.find(token);
      if (!link) return undefined;
      if (await recoveryWaits.mustWait(link)) throw new RecoveryMustWait();
      // Again, for they may have been asked for more while the password waited for its turn.
      const isAllowed = async (tx: Queries): Promise<boolean> =>
        !(await recoveryWaits.mustWait(link, tx)) && (await links.use(token, tx));
      const { purpose } = link;
      const account = await change(link.account, { ...how, purpose, isAllowed });
      return account && { account, purpose };
    })();
    inUse.set(token, use);
    return use.finally(() => {
      if (inUse.get(token) === use) inUse.delete(token);
    });
  }

  return {
    /**
     * Whether it is the person who asks is for the caller to know.
     *
     * @param origin with their session: a password may wait for its turn, and what was asked for before
     *   a recovery sets nothing after it.
     * @param alongside what else happens with the change, or the change does not.
     * @throws Refusal `password_refused`
     * @throws SessionEnded, TooManyPasswords
     */
    async change(
      account: Account,
      password: string,
      origin: Origin,
      alongside?: Alongside<Account>,
    ): Promise<Account> {
      const isAllowed = async (): Promise<boolean> => true;
      const changed = await change(account, { origin, password, isAllowed, alongside });
      if (!changed) throw new Error(`the account ${account.id} is gone`);
      return changed;
    },

    /**
     * @returns undefined when the link is not good (any more), which is so for all but one of those
     *   who use it at the same moment.
     * @throws Refusal `password_refused`, TooManyPasswords or RecoveryMustWait: the link is then as good
     *   as before.
     */
    changeByLink: (
      token: string,
      password: string,
      origin: Origin,
      alongside?: Alongside<Account>,
    ): Promise<Recovered | undefined> => useInTurn(token, { origin, password, alongside }),

    /** As `changeByLink` where nobody has a password: the link itself is then who they are. */
    useLink: (
      token: string,
      origin: Origin,
      alongside?: Alongside<Account>,
    ): Promise<Recovered | undefined> => useInTurn(token, { origin, alongside }),
  };
}
