/** Finds and lists accounts. Changes columns that only Gatehouse writes; for all others, see changes/accounts.ts. */
import type { Clock } from '../base/clock.ts';
import { Refusal } from '../base/refusal.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { mapPage, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import { type Database, type InTransaction, type RowOf, raise, withoutNulls } from '../storage/queries.ts';
import { createPeople, type People } from './access/people.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  type AccountRow,
  type AccountState,
  accountFrom,
  isAccountId,
  LISTED_ACCOUNTS,
  type ListedAccount,
  SELECT_ACCOUNTS,
} from './account.ts';
import { emailKey } from './email.ts';
import { OWES_STRONG_METHOD, type StrongMethods } from './strong-sign-ins.ts';

export type AccountRegistry = ReturnType<typeof createAccountRegistry>;

export interface NewAccount {
  readonly email: string;
  readonly name: string;
  /** Absent if the user will set a password through a one-time link. */
  readonly password?: string | undefined;
}

export type AddAccount = (account: NewAccount, inTransaction?: InTransaction<Account>) => Promise<Account>;

export function createAccountRegistry(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly people?: People;
}) {
  const { database, people = createPeople(parts) } = parts;
  const forget = (id: string): void => people.forget('accounts', id);

  async function change(
    id: string,
    assignments: `${'unwanted_mail' | 'language' | 'session_generation'} = ${string}`,
    values: readonly unknown[],
    inTransaction?: InTransaction<Account>,
  ): Promise<Account> {
    if (!isAccountId(id)) throw unknownAccount(id);
    const changed = await transactionOf(database, id, async (tx) => {
      const [row] = await tx.query<AccountRow>(
        `UPDATE accounts SET ${assignments} WHERE id = $1 RETURNING ${ACCOUNT_COLUMNS}`,
        [id, ...values],
      );
      if (row === undefined) throw unknownAccount(id);
      const account = accountFrom(row);
      await inTransaction?.(tx, account);
      return account;
    });
    forget(id);
    return changed;
  }

  return {
    find: async (id: string): Promise<Account | undefined> => (await people.find(id))?.account,

    /** @param entered the address in any spelling (see email.ts) */
    async findByEmail(entered: string): Promise<Account | undefined> {
      const [row] = await database.query<AccountRow>(`${SELECT_ACCOUNTS} WHERE email_key = $1`, [emailKey(entered)]);
      return row && accountFrom(row);
    },

    /**
     * Returns the values that the navigation shows: whether the account owns an OAuth client or an API key, and how many
     * clients (at most 99) wait for a decision of the organizations that the account owns or administers.
     */
    async navigationOf(id: string): Promise<{ readonly isDeveloper: boolean; readonly waiting: number }> {
      const [found = { isDeveloper: false, waiting: 0 }] = await database.query<{
        isDeveloper: boolean;
        waiting: number;
      }>(
        // This query jumps in the index from one client to the next, and stops after 1,000 clients.
        `WITH RECURSIVE own AS (
            SELECT o.id FROM organization_memberships m JOIN organizations o ON o.id = m.organization_id
              WHERE m.account_id = $1 AND m.role IN ('owner', 'admin') AND o.asks_first AND o.ended_at IS NULL
          ), connected AS (
            SELECT id AS organization_id, (${nextConnected('own.id', "''")}) AS client_id FROM own
            UNION ALL SELECT organization_id, (${nextConnected('connected.organization_id', 'connected.client_id')})
              FROM connected WHERE client_id IS NOT NULL
          )
          SELECT EXISTS (SELECT FROM clients WHERE owner_account_id = $1)
              OR EXISTS (SELECT FROM api_keys WHERE account_id = $1) AS "isDeveloper",
            (SELECT count(*)::integer FROM (
              SELECT FROM (SELECT * FROM connected WHERE client_id IS NOT NULL LIMIT 1000) n
                WHERE NOT EXISTS (SELECT FROM client_decisions d
                    WHERE d.organization_id = n.organization_id AND d.client_id = n.client_id)
                  AND NOT EXISTS (SELECT FROM barred_clients b
                    WHERE b.organization_id = n.organization_id AND b.client_id = n.client_id)
                LIMIT 99) undecided) AS waiting`,
        [id],
      );
      return found;
    },

    /** Lists accounts, oldest first. `owing` selects accounts that must have a strong method, but do not have one. */
    async list({
      state,
      owing,
      ...page
    }: PageRequest & {
      readonly state?: AccountState | undefined;
      readonly owing?: StrongMethods | undefined;
    } = {}): Promise<Page<ListedAccount>> {
      const query = {
        select: LISTED_ACCOUNTS,
        order: ['"createdAt"', 'id'],
        cells: ['id', 'email', 'name', 'state'],
        filters: [
          ['state = $', state],
          [OWES_STRONG_METHOD, owing?.issuers],
          [`NOT ($ AND 'passkey' = ANY("signInMethods"))`, owing?.passkeys],
        ] as const,
      };
      const found = await pageOf<RowOf<ListedAccount> & { readonly state: string }>(database, query, page);
      return mapPage(found, ({ state: _, ...row }) => withoutNulls<ListedAccount>(row));
    },

    /** @param unwanted the kinds of mail that the user does not want @throws Refusal `account_unknown` */
    setUnwantedMail: (id: string, unwanted: readonly string[]) => change(id, 'unwanted_mail = $2', [unwanted]),

    /** @throws Refusal `account_unknown` */
    setLanguage: (id: string, language: string) => change(id, 'language = $2', [language]),

    /** Ends every browser session of the account, on every node. @throws Refusal `account_unknown` */
    endSessions: (id: string, inTransaction?: InTransaction<Account>) =>
      change(id, 'session_generation = session_generation + 1', [], inTransaction),

    /**
     * Ends every browser session of all users. For use after a restore, because the restored database does not know
     * which sessions have ended since the backup. Writes one row, whatever the number of accounts.
     */
    endEverySession: (inTransaction: InTransaction): Promise<void> =>
      database.transaction(async (tx) => {
        // Also use the clock, because a database that was restored from a backup has lost the latest generations.
        const microseconds = 'extract(epoch FROM clock_timestamp()) * 1000000';
        await raise(tx, 'session_generation', `session_generation + 1, ${microseconds}`);
        await inTransaction(tx);
      }),

    /** Call this after other code has changed the account, because the database's notification arrives later. */
    forget,
  };
}

export function unknownAccount(id: string): Refusal {
  return new Refusal('account_unknown', `There is no account ${id}.`, 'See the list of accounts.');
}

const nextConnected = (organization: string, after: string): string =>
  `SELECT client_id FROM member_connections WHERE organization_id = ${organization} AND client_id > ${after}
    ORDER BY client_id LIMIT 1`;
