/** Decides what has access to an organization, and ends memberships for owners and admins. */
import type { Access } from '../accounts/access/access.ts';
import { isAdmin, type Role } from '../accounts/access/reach.ts';
import { isAccountId } from '../accounts/account.ts';
import type { OrganizationPolicy } from '../accounts/organizations/organization-policy.ts';
import { isOrganizationId } from '../accounts/organizations/places.ts';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { Changes } from '../changes/engine.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';

/** Deletes the approvals of a client, which it needs again. @param tx the transaction of the client's change */
export const withdrawApprovals = (tx: Queries, clientId: string): Promise<unknown> =>
  tx.query('DELETE FROM client_decisions WHERE client_id = $1 AND is_approved', [clientId]);

export type OrganizationEnds = ReturnType<typeof createOrganizationEnds>;

interface Deciding {
  readonly organizationId: string;
  /** The account of the owner or admin; undefined for the operator. */
  readonly by: string | undefined;
  /** Called first in the same transaction; rejects if the change must not be made. */
  readonly check?: InTransaction | undefined;
  /** Called in the same transaction, if something changed. */
  readonly inTransaction?: InTransaction;
}

export function createOrganizationEnds(parts: {
  readonly database: Database;
  readonly engine: Changes;
  readonly access: Access;
  readonly clock: Clock;
}) {
  const { database, engine, access, clock } = parts;

  const change = (
    of: Deciding,
    work: (tx: Queries, present: Present) => Promise<readonly unknown[]>,
  ): Promise<boolean> =>
    checked(of, () => database.transaction((tx) => changeIn(tx, of, (present) => work(tx, present))));

  /** Like `change`, for data that other systems write, too: their older data must not undo a change. */
  const changeRecords = (
    of: Deciding,
    accountId: string | undefined,
    work: (tx: Queries, now: Date, present: Present) => Promise<readonly unknown[]>,
  ): Promise<boolean> =>
    checked(of, () =>
      engine.transaction((tx, now) => changeIn(tx, of, (present) => work(tx, now, present), accountId)),
    );

  const checked = async ({ organizationId, by }: Deciding, work: () => Promise<boolean>): Promise<boolean> =>
    isOrganizationId(organizationId) && (await database.inTurn(by, work));

  async function changeIn(
    tx: Queries,
    { organizationId, by, check, inTransaction }: Deciding,
    work: (present: Present) => Promise<readonly unknown[]>,
    accountId = by,
  ): Promise<boolean> {
    const ids = [by, accountId].filter((id) => id !== undefined);
    const present = await lockedMembers(tx, organizationId, ids);
    if (by !== undefined && !isAdmin(present.roleOf(by))) return false;
    await check?.(tx);
    const changed = await work(present);
    if (changed.length === 0) return false;
    await inTransaction?.(tx);
    return true;
  }

  /** @returns the decisions that changed */
  const decide = (
    tx: Queries,
    { organizationId, by }: Deciding,
    { clientIds, isApproved, sentence }: Decision,
  ): Promise<unknown[]> =>
    tx.query(
      `INSERT INTO client_decisions AS d
          (organization_id, client_id, is_approved, sentence, decided_at, decided_by)
        SELECT $1, id, $3, $4, $5, $6 FROM clients
          WHERE id = ANY($2) AND kind IN ('confidential', 'public')
        ON CONFLICT (organization_id, client_id) DO UPDATE
          SET is_approved = excluded.is_approved, sentence = excluded.sentence,
            decided_at = excluded.decided_at, decided_by = excluded.decided_by
          WHERE d.is_approved <> excluded.is_approved
            OR d.sentence IS DISTINCT FROM excluded.sentence
        RETURNING client_id`,
      [organizationId, clientIds, isApproved, sentence, new Date(clock()), by ?? null],
    );

  return {
    /**
     * Approves the client for the organization, or declines it with a sentence for the users who have connected it. A
     * block of the client stays, and has priority over an approval.
     *
     * @returns false if `by` is no longer an owner or admin, if the client is unknown or not one that users can
     *   connect, or if this decision is stored already
     */
    async decide({
      clientId,
      isApproved,
      sentence = null,
      ...whose
    }: Deciding & {
      readonly clientId: string;
      readonly isApproved: boolean;
      readonly sentence?: string | null | undefined;
    }): Promise<boolean> {
      const decision = { clientIds: [clientId], isApproved, sentence };
      const isDecided = await change(whose, (tx) => decide(tx, whose, decision));
      if (isDecided) access.clientBlocks.forget(clientId);
      return isDecided;
    },

    /** Also approves the clients in `approved`. @returns false if `by` is no owner or admin now, or nothing changed */
    async setPolicy({
      policy: { asksFirst, allowsApiKeys },
      approved,
      ...whose
    }: Deciding & {
      readonly policy: OrganizationPolicy;
      readonly approved: readonly string[];
    }): Promise<boolean> {
      const decision = { clientIds: approved, isApproved: true, sentence: null };
      const isChanged = await changeRecords(whose, undefined, async (tx, now) => {
        const approvals = approved.length > 0 ? await decide(tx, whose, decision) : [];
        const set = { asks_first: asksFirst, allows_api_keys: allowsApiKeys };
        const { differences } = await engine.make(tx, now, [{ type: 'organization', id: whose.organizationId, set }]);
        return [...approvals, ...differences];
      });
      if (isChanged) {
        for (const clientId of approved) access.clientBlocks.forget(clientId);
        access.forgetOrganization(whose.organizationId);
      }
      return isChanged;
    },

    /**
     * Also removes the member's rights in every warehouse.
     *
     * @returns false if `by` is no longer an owner or admin, or no member has this id
     * @throws Refusal `owner_protected` or `last_owner`
     */
    async endMembership({
      accountId,
      ...whose
    }: Deciding & { readonly accountId: string; readonly by: string }): Promise<boolean> {
      if (!isAccountId(accountId)) return false;
      const { organizationId, by } = whose;
      const isEnded = await changeRecords(whose, accountId, async (tx, now, { roleOf, owners }) => {
        if (roleOf(accountId) === 'owner') {
          if (roleOf(by) !== 'owner') throw protectedOwner();
          if (owners.every((owner) => owner === accountId)) throw lastOwner();
        }
        const ids = { account_id: accountId, organization_id: organizationId };
        return (await engine.make(tx, now, [{ type: 'membership', ...ids, end: 'removed' }])).differences;
      });
      if (isEnded) access.forget(accountId);
      return isEnded;
    },

    /**
     * Blocks a client in the organization or in one of its warehouses, no matter which users connected it. Each block
     * must be removed separately.
     *
     * @returns false if `by` is no longer an owner or admin, the client is unknown or already blocked, or the warehouse
     *   does not belong to the organization
     */
    async block({ clientId, warehouseId, ...whose }: BlockedClient): Promise<boolean> {
      if (!isClientId(clientId)) return false;
      const { organizationId, by } = whose;
      const made = { at: new Date(clock()), by };
      const isBlocked = await change(whose, (tx) =>
        warehouseId === undefined
          ? access.clientBlocks.block(tx, organizationId, clientId, made)
          : access.clientBlocks.blockIn(tx, organizationId, warehouseId, clientId, made),
      );
      access.clientBlocks.forget(clientId);
      return isBlocked;
    },

    /** @returns false if `by` is no longer an owner or admin, or the client is not blocked */
    async unblock({ clientId, warehouseId, ...whose }: BlockedClient): Promise<boolean> {
      if (!isClientId(clientId)) return false;
      const { organizationId } = whose;
      const isUnblocked = await change(whose, (tx) =>
        warehouseId === undefined
          ? access.clientBlocks.unblock(tx, organizationId, clientId)
          : access.clientBlocks.unblockIn(tx, organizationId, warehouseId, clientId),
      );
      access.clientBlocks.forget(clientId);
      return isUnblocked;
    },
  };
}

interface BlockedClient extends Deciding {
  readonly clientId: string;
  /** Absent for the whole organization. */
  readonly warehouseId?: string | undefined;
}

interface Decision {
  readonly clientIds: readonly string[];
  readonly isApproved: boolean;
  readonly sentence: string | null;
}

interface Present {
  roleOf(accountId: string): Role | undefined;
  readonly owners: readonly string[];
}

/** Returns these members and all owners, locked until the transaction ends. */
async function lockedMembers(tx: Queries, organizationId: string, accountIds: readonly string[]): Promise<Present> {
  // Lock accounts before memberships, like a deletion of an account, to avoid deadlocks.
  await tx.query('SELECT FROM accounts WHERE id = ANY($1) ORDER BY id FOR KEY SHARE', [accountIds]);
  const members = await tx.query<{ id: string; role: Role }>(
    `SELECT account_id AS id, role FROM organization_memberships WHERE id = ANY (ARRAY(
        SELECT id FROM organization_memberships WHERE organization_id = $1 AND account_id = ANY($2)
        UNION ALL SELECT id FROM organization_memberships
          WHERE organization_id = $1 AND role = 'owner' AND client_id IS NULL))
      ORDER BY id FOR UPDATE`,
    [organizationId, accountIds],
  );
  const active = await tx.query<{ id: string }>('SELECT id FROM accounts WHERE id = ANY($1) AND suspended_at IS NULL', [
    members.map(({ id }) => id),
  ]);
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
