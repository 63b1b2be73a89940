/** Lets owners and admins of an organization block clients and end the memberships of others. */
import type { Clock } from '../../base/clock.ts';
import { isClientId } from '../../base/random-id.ts';
import { Refusal } from '../../base/refusal.ts';
import { transactionOf } from '../../storage/account-turns.ts';
import type { Database, InTransaction, Queries } from '../../storage/queries.ts';
import { isAccountId } from '../account.ts';
import { isOrganizationId } from '../organizations/places.ts';
import type { Access } from './access.ts';
import type { Role } from './reach.ts';

export type OrganizationEnds = ReturnType<typeof createOrganizationEnds>;

interface Change {
  readonly organizationId: string;
  /** The account of the owner or admin. */
  readonly by: string;
  /** Called in the same transaction, if something changed. */
  readonly inTransaction?: InTransaction;
}

export const isAdmin = (role: Role | undefined): boolean => role === 'owner' || role === 'admin';

export function createOrganizationEnds(parts: {
  readonly database: Database;
  readonly access: Access;
  readonly clock: Clock;
}) {
  const { database, access, clock } = parts;

  async function change(
    { organizationId, by, inTransaction }: Change,
    work: (tx: Queries, present: Present) => Promise<readonly unknown[]>,
    accountId = by,
  ): Promise<boolean> {
    if (!isOrganizationId(organizationId)) return false;
    return transactionOf(database, by, async (tx) => {
      const present = await lockedMembers(tx, organizationId, [by, accountId]);
      if (!isAdmin(present.roleOf(by))) return false;
      const changed = await work(tx, present);
      if (changed.length === 0) return false;
      await inTransaction?.(tx);
      return true;
    });
  }

  return {
    /**
     * Ends a membership with the rights in every warehouse.
     *
     * @returns false if `by` is no longer an owner or admin, or there is no member with this id.
     * @throws Refusal `owner_protected` or `last_owner`
     */
    async endMembership({
      accountId,
      ...whose
    }: Change & { readonly accountId: string }): Promise<boolean> {
      if (!isAccountId(accountId)) return false;
      const { organizationId, by } = whose;
      const isEnded = await change(
        whose,
        async (tx, { roleOf, owners }) => {
          if (roleOf(accountId) === 'owner') {
            if (roleOf(by) !== 'owner') throw protectedOwner();
            if (owners.every((owner) => owner === accountId)) throw lastOwner();
          }
          return tx.query(
            `DELETE FROM organization_memberships WHERE organization_id = $1 AND account_id = $2
              RETURNING 1`,
            [organizationId, accountId],
          );
        },
        accountId,
      );
      if (isEnded) access.forget(accountId);
      return isEnded;
    },

    /**
     * Blocks a client in the organization, no matter which user approved it.
     *
     * @returns false if `by` is no longer an owner or admin, or the client is unknown or blocked.
     */
    async block({ clientId, ...whose }: Change & { readonly clientId: string }): Promise<boolean> {
      if (!isClientId(clientId)) return false;
      const { organizationId, by } = whose;
      const isBlocked = await change(whose, (tx) =>
        tx.query(
          `WITH barred AS (
              INSERT INTO barred_clients (organization_id, client_id, barred_at, barred_by)
                SELECT $1, id, $3, $4 FROM clients WHERE id = $2
                ON CONFLICT DO NOTHING RETURNING client_id
            ), redirects AS (
              INSERT INTO barred_redirects
                (organization_id, client_id, owner_account_id, redirect_uris, barred_by)
                SELECT $1, id, owner_account_id, redirect_uris, $4
                  FROM clients JOIN barred ON id = client_id WHERE owner_account_id IS NOT NULL
                ON CONFLICT (organization_id, client_id) DO UPDATE
                  SET owner_account_id = excluded.owner_account_id,
                    redirect_uris = excluded.redirect_uris, barred_by = excluded.barred_by
            )
            SELECT FROM barred`,
          [organizationId, clientId, new Date(clock()), by],
        ),
      );
      if (isBlocked) access.clientBlocks.forget(clientId);
      return isBlocked;
    },

    /** @returns false if `by` is no longer an owner or admin, or the client is not blocked. */
    async unblock({
      clientId,
      ...whose
    }: Change & { readonly clientId: string }): Promise<boolean> {
      if (!isClientId(clientId)) return false;
      const isUnblocked = await change(whose, (tx) =>
        tx.query(
          // Also delete the blocks of deleted clients of the same owner, because no page lists them.
          `WITH admitted AS (
              DELETE FROM barred_clients WHERE organization_id = $1 AND client_id = $2
                RETURNING client_id
            ), redirects AS (
              DELETE FROM barred_redirects r WHERE organization_id = $1
                AND EXISTS (SELECT FROM admitted)
                AND (client_id = $2 OR (
                  owner_account_id = (SELECT owner_account_id FROM clients WHERE id = $2)
                  AND NOT EXISTS (SELECT FROM clients c WHERE c.id = r.client_id)))
            )
            SELECT FROM admitted`,
          [whose.organizationId, clientId],
        ),
      );
      if (isUnblocked) access.clientBlocks.forget(clientId);
      return isUnblocked;
    },
  };
}

interface Present {
  roleOf(accountId: string): Role | undefined;
  /** The owners who can sign in. */
  readonly owners: readonly string[];
}

/**
 * Returns these members and all owners, locked until the transaction ends. Parallel changes of
 * these memberships run one after the other.
 */
async function lockedMembers(
  tx: Queries,
  organizationId: string,
  accountIds: readonly string[],
): Promise<Present> {
  // Lock accounts before memberships, like a deletion of an account, to avoid deadlocks.
  await tx.query('SELECT FROM accounts WHERE id = ANY($1) ORDER BY id FOR KEY SHARE', [accountIds]);
  const members = await tx.query<{ id: string; role: Role }>(
    `SELECT account_id AS id, role FROM organization_memberships
      WHERE organization_id = $1 AND (account_id = ANY($2) OR (role = 'owner' AND client_id IS NULL))
      ORDER BY id FOR UPDATE`,
    [organizationId, accountIds],
  );
  const active = await tx.query<{ id: string }>(
    'SELECT id FROM accounts WHERE id = ANY($1) AND suspended_at IS NULL',
    [members.map(({ id }) => id)],
  );
  const isActive = new Set(active.map(({ id }) => id));
  return {
    roleOf: (accountId) => members.find(({ id }) => id === accountId)?.role,
    owners: members.filter(({ id, role }) => role === 'owner' && isActive.has(id)).map(idOf),
  };
}

const idOf = ({ id }: { readonly id: string }): string => id;

const protectedOwner = (): Refusal =>
  new Refusal(
    'owner_protected',
    'Only an owner can end the membership of an owner.',
    'Ask an owner of the organization.',
  );

const lastOwner = (): Refusal =>
  new Refusal(
    'last_owner',
    'This is the last owner who can sign in.',
    'Ask the operator of this service to make another person an owner first.',
  );
