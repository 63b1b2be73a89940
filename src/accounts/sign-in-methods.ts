/** The passkeys and linked providers of an account: sign-in methods that its user may remove. */
import type { InTransaction, Queries } from '../storage/queries.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  type AccountRow,
  accountFrom,
  hasActiveSession,
  SELECT_ACCOUNTS,
} from './account.ts';
import type { AccountRegistry } from './account-registry.ts';
import { type NewActivity, type Origin, SessionEnded } from './activity/activity.ts';

export interface LinkedMethod {
  /** The method's value in forms: its kind and its id within that kind. */
  readonly id: string;
  /** The provider's label, such as `Warehouse platform`, or the name of a passkey. */
  readonly label: string;
  readonly kind: 'provider' | 'passkey';
  readonly addedAt: Date;
  readonly lastUsedAt: Date | undefined;
  /** True if the current settings allow no sign-in with this method. */
  readonly isDisabled: boolean;
  /** True if a sign-in with this method can satisfy `sign_in.require` under the current settings. */
  readonly isStrong: boolean;
}

export interface MethodsOfKind {
  /** The result is sorted, oldest first. */
  of(accountId: string, tx?: Queries): Promise<readonly LinkedMethod[]>;
  /** @param id the `id` of one of the methods that `of` returned @returns the entry for the activity log */
  remove(accountId: string, id: string, tx: Queries): Promise<Pick<NewActivity, 'action' | 'details'>>;
}

export const LINK_PREFIX = 'provider ';

export const removesLink = (methodIds: readonly string[]): boolean =>
  methodIds.some((id) => id.startsWith(LINK_PREFIX));

/**
 * Runs a transaction that may remove sign-in methods, in the queue of the account and with the account's row locked.
 * After it has removed a link, no older data of another system restores the link (changes/accounts.ts).
 *
 * @param removesLink true if it may remove a link; it then also waits for imports and changes by other systems
 */
export type MethodChange = <Result>(
  accountId: string,
  removesLink: boolean,
  work: (tx: Queries) => Promise<Result>,
) => Promise<Result>;

/** Called while a new method is stored, with the account locked. @throws SessionEnded if the session may not add it */
export type RequireMayAdd = (tx: Queries) => Promise<void>;

/** Ends all sessions. Call this when an operator removes a method, which may be the only proof of a session. */
export const endSessionsIn = (tx: Queries, accountId: string): Promise<unknown> =>
  tx.query('UPDATE accounts SET session_generation = session_generation + 1 WHERE id = $1', [accountId]);

interface Ending {
  readonly origin: Origin;
  readonly password: boolean;
  readonly sessions: boolean;
  readonly passwords: boolean;
  readonly methods: readonly string[];
  /** Ends the chosen connections and API keys. Calls `removeWith` to remove `methods`. */
  readonly rest: InTransaction<Account>;
}

export type SignInMethods = ReturnType<typeof createSignInMethods>;

class NothingLeft extends Error {}

export function createSignInMethods(parts: {
  readonly accounts: Pick<AccountRegistry, 'forget'> & { readonly changeMethods: MethodChange };
  readonly activity: { record(entry: NewActivity, tx: Queries): Promise<void> };
  readonly kinds: readonly MethodsOfKind[];
}) {
  const { accounts, activity, kinds } = parts;
  const listed = (accountId: string, tx?: Queries) =>
    Promise.all(kinds.map(async (kind) => (await kind.of(accountId, tx)).map((method) => ({ method, kind })))).then(
      (lists) => lists.flat(),
    );

  async function removeWith(
    accountId: string,
    ids: readonly string[],
    {
      origin,
      tx,
      isKept = () => false,
    }: { readonly origin: Origin; readonly tx: Queries; readonly isKept?: (method: LinkedMethod) => boolean },
  ): Promise<readonly LinkedMethod[]> {
    const found = (await listed(accountId, tx)).filter(({ method }) => ids.includes(method.id) && !isKept(method));
    for (const { method, kind } of found) {
      const what = await kind.remove(accountId, method.id, tx);
      await activity.record({ ...what, actor: 'person', accountId, origin }, tx);
    }
    return found.map(({ method }) => method);
  }

  /**
   * Ends the selected access in one transaction. Removing the password or a method also ends all sessions.
   *
   * @returns the changed account; the string `last` if the user could no longer sign in (then nothing is changed)
   */
  async function end(accountId: string, { origin, password, sessions, passwords, methods, rest }: Ending) {
    try {
      return await accounts.changeMethods(accountId, removesLink(methods), async (tx) => {
        // Check the session here, because not every record below checks it.
        const [row] = await tx.query<AccountRow>(
          `${SELECT_ACCOUNTS} WHERE id = $1 AND ($2::text IS NULL OR ${hasActiveSession('$2', '$3')})`,
          [accountId, origin.session?.uid ?? null, origin.session?.generation ?? null],
        );
        if (!row) throw new SessionEnded();
        const account = accountFrom(row);
        const before = await listed(accountId, tx);
        const details = { purpose: 'removed' };
        const who = { actor: 'person', accountId, origin } as const;
        if (password) await activity.record({ action: 'password_changed', ...who, details }, tx);
        await rest(tx, account);
        const left = await listed(accountId, tx);
        const canSignIn = (methods: typeof left, hasPassword: boolean): boolean =>
          (passwords && hasPassword) || methods.some(({ method }) => !method.isDisabled);
        const could = canSignIn(before, account.hasPassword);
        if (could && !canSignIn(left, account.hasPassword && !password)) throw new NothingLeft();
        const endsSessions = password || sessions || left.length < before.length;
        if (sessions) await activity.record({ action: 'signed_out_everywhere', ...who }, tx);
        const [changed] = await tx.query<AccountRow>(
          `UPDATE accounts SET password_hash = CASE WHEN $2 THEN NULL ELSE password_hash END,
              session_generation = session_generation + $3
            WHERE id = $1 RETURNING ${ACCOUNT_COLUMNS}`,
          [accountId, password, endsSessions ? 1 : 0],
        );
        return accountFrom(changed ?? row);
      });
    } catch (error) {
      if (error instanceof NothingLeft) return 'last';
      throw error;
    } finally {
      accounts.forget(accountId);
    }
  }

  return {
    of: async (accountId: string): Promise<readonly LinkedMethod[]> =>
      (await listed(accountId)).map(({ method }) => method),
    /** Removes the existing, removable methods among `ids` in the caller's transaction. Returns the removed methods. */
    removeWith,

    /** Also ends every session. @returns `last` as `end` does; undefined for an unknown id @throws SessionEnded */
    async remove(
      accountId: string,
      id: string,
      { origin, passwords }: Pick<Ending, 'origin' | 'passwords'>,
    ): Promise<Account | 'last' | undefined> {
      let removed: readonly LinkedMethod[] = [];
      const rest = async (tx: Queries): Promise<void> => {
        removed = await removeWith(accountId, [id], { origin, tx });
      };
      const left = await end(accountId, { origin, password: false, sessions: false, passwords, methods: [id], rest });
      return removed.length > 0 ? left : undefined;
    },

    /** Ends everything that the user has marked as not recognized. @throws SessionEnded */
    endUnrecognized: (accountId: string, what: Ending): Promise<Account | 'last'> => end(accountId, what),
  };
}
