/** Users' identities at providers, and the accounts that are linked with them. */
import type { Clock } from '../../base/clock.ts';
import { lockedTransactionOf } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, readAccount, SELECT_ACCOUNTS } from '../account.ts';
import { LINK_PREFIX, type MethodsOfKind } from '../sign-in-methods.ts';
import { canBeStrong, type UpstreamStrength } from '../sign-in-strength.ts';

/** A user at a provider: the issuer, and the issuer's permanent id for the user (`sub`). */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

export interface LinkedIdentity extends Identity {
  readonly createdAt: Date;
  /** Null for an imported link that was never used. */
  readonly lastUsedAt: Date | null;
}

/**
 * `linked`: this call has created the link. `known`: the link existed. `taken`: the identity belongs to another
 * account, or the account has another identity of that issuer. One statement decides, so that two parallel calls cannot
 * both create a link.
 */
export type LinkOutcome = 'linked' | 'known' | 'taken';

interface UsedIdentity {
  readonly account: Account;
  /** True for the first sign-in with a link that an import has created. */
  readonly isFirstUse: boolean;
}

export type Identities = ReturnType<typeof createIdentities>;

export const methodIdOf = (issuer: string): string => `${LINK_PREFIX}${issuer}`;

export function createIdentities({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
  const listOf = (accountId: string, queries: Queries): Promise<LinkedIdentity[]> =>
    queries.query(
      `SELECT issuer, subject, created_at AS "createdAt", last_used_at AS "lastUsedAt" FROM account_identities
        WHERE account_id = $1 ORDER BY created_at, issuer`,
      [accountId],
    );

  /** For the first sign-in with an imported link: deletes the invitations that were sent since the import. */
  async function useFirst(identity: Identity, accountId: string): Promise<UsedIdentity | undefined> {
    const values = [identity.issuer, identity.subject, accountId];
    const ofLink = 'issuer = $1 AND subject = $2 AND account_id = $3';
    return lockedTransactionOf(database, accountId, async (tx) => {
      const account = await readAccount(tx, accountId);
      if (!account) return undefined;
      if (account.isSuspended) return { account, isFirstUse: false };
      const [link] = await tx.query<{ isFirstUse: boolean }>(
        `SELECT last_used_at IS NULL AS "isFirstUse" FROM account_identities WHERE ${ofLink}`,
        values,
      );
      // Another request has removed the link while this request waited for the lock.
      if (!link) return undefined;
      const { isFirstUse } = link;
      if (isFirstUse) {
        await tx.query('DELETE FROM password_links WHERE account_id = $1', [accountId]);
      }
      await tx.query(`UPDATE account_identities SET last_used_at = $4 WHERE ${ofLink}`, [...values, new Date(clock())]);
      return { account, isFirstUse };
    });
  }

  return {
    /** Records a sign-in. The first sign-in with an imported link deletes the one-time links of the account. */
    async use({ issuer, subject }: Identity): Promise<UsedIdentity | undefined> {
      // Use one statement. If the link is removed in parallel, the account must be as before the removal, so that the
      // removal ends the new session, too.
      const [row] = await database.query<AccountRow>(
        `WITH used AS (
            UPDATE account_identities SET last_used_at = $3
              WHERE issuer = $1 AND subject = $2 AND last_used_at IS NOT NULL
              RETURNING account_id
          ) ${SELECT_ACCOUNTS} WHERE id = (SELECT account_id FROM used)`,
        [issuer, subject, new Date(clock())],
      );
      if (row) return { account: accountFrom(row), isFirstUse: false };
      const [link] = await database.query<{ account_id: string }>(
        'SELECT account_id FROM account_identities WHERE issuer = $1 AND subject = $2',
        [issuer, subject],
      );
      return link && useFirst({ issuer, subject }, link.account_id);
    },

    /**
     * Links the identity with the account, but never moves a link from another account. Returns `taken` also if the
     * account has just been suspended. A new link deletes the one-time links of the account.
     */
    async link(accountId: string, { issuer, subject }: Identity, tx: Queries): Promise<LinkOutcome> {
      // A unique constraint, on the identity or on the account and issuer, rejects a second link.
      const made = await tx.query(
        `INSERT INTO account_identities (issuer, subject, account_id, created_at, last_used_at)
          SELECT $1, $2, id, $4, $4 FROM accounts
          WHERE id = $3 AND suspended_at IS NULL FOR SHARE
          ON CONFLICT DO NOTHING RETURNING 1`,
        [issuer, subject, accountId, new Date(clock())],
      );
      if (made.length > 0) return 'linked';
      const known = await tx.query(
        `SELECT FROM account_identities
          WHERE issuer = $1 AND subject = $2 AND account_id = $3`,
        [issuer, subject, accountId],
      );
      return known.length > 0 ? 'known' : 'taken';
    },

    /** The result is sorted, oldest first. */
    listOf: (accountId: string): Promise<LinkedIdentity[]> => listOf(accountId, database),

    listMethods: (
      providers: readonly (UpstreamStrength & { readonly id: string; readonly label: string })[],
    ): MethodsOfKind => ({
      of: async (accountId, tx = database) =>
        (await listOf(accountId, tx)).map(({ issuer, createdAt, lastUsedAt }) => {
          const known = providers.find((provider) => provider.issuer === issuer);
          return {
            id: methodIdOf(issuer),
            kind: 'provider',
            label: known?.label ?? issuer,
            addedAt: createdAt,
            lastUsedAt: lastUsedAt ?? undefined,
            isDisabled: known === undefined,
            isStrong: known !== undefined && canBeStrong(known),
          };
        }),

      async remove(accountId, id, tx) {
        const issuer = id.slice(LINK_PREFIX.length);
        const { subject = '' } = (await removeLink(tx, accountId, issuer)) ?? {};
        const known = providers.find((provider) => provider.issuer === issuer);
        const named = { provider: known?.id ?? issuer, provider_name: known?.label ?? issuer };
        return { action: 'identity_unlinked', details: { ...named, issuer, subject } };
      },
    }),
  };
}

/** Call this in a transaction of `MethodChange`, which prevents other systems from restoring the link with old data. */
export async function removeLink(tx: Queries, accountId: string, issuer: string): Promise<Identity | undefined> {
  const [gone] = await tx.query<Identity>(
    'DELETE FROM account_identities WHERE account_id = $1 AND issuer = $2 RETURNING issuer, subject',
    [accountId, issuer],
  );
  return gone;
}
