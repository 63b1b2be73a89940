/** For owners, admins and operators: approves or blocks clients, ends memberships, and sets organization policies. */
import type { Access } from '../accounts/access/access.ts';
import { isAdmin, type Role } from '../accounts/access/reach.ts';
import { type Account, isAccountId } from '../accounts/account.ts';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { Action } from '../accounts/activity/activity-words.ts';
import type { OrganizationPolicy } from '../accounts/organizations/organization-policy.ts';
import { isOrganizationId } from '../accounts/organizations/places.ts';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { Changes } from '../changes/engine.ts';
import { changedMeanwhile } from '../clients/client-edits.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { type ApprovableClient, approvableClients } from './client-standing.ts';

export type ActingAdmin = Acting & { readonly admin: NonNullable<Acting['admin']> };

interface Acting {
  readonly organization: Named;
  /** The acting owner or admin; absent for the operator. */
  readonly admin?: { readonly account: Pick<Account, 'id' | 'name'>; readonly origin: Origin };
}

interface Named {
  readonly id: string;
  readonly name: string;
}

export type IsAsShown = (client: ApprovableClient) => boolean;

/** Locks the clients. Refuses the approval if one of them differs from what the admin saw. */
async function requireAsShown(tx: Queries, clients: readonly Named[], isAsShown: IsAsShown): Promise<void> {
  const present = await approvableClients(tx, clients.map(idOf), 'FOR SHARE');
  if (!present.every(isAsShown)) throw changedMeanwhile();
}

/** Deletes a client's approvals, so that it needs new ones. @param tx the transaction of the client's change */
export const withdrawApprovals = (tx: Queries, clientId: string): Promise<unknown> =>
  tx.query('DELETE FROM client_decisions WHERE client_id = $1 AND is_approved', [clientId]);

export type OrganizationEndings = ReturnType<typeof createOrganizationEndings>;

/** Every change returns false if the acting user is no longer an owner or admin, or if nothing changed. */
export function createOrganizationEndings(parts: {
  readonly database: Database;
  readonly engine: Changes;
  readonly access: Access;
  readonly activity: Activity;
  readonly clock: Clock;
}) {
  const { database, engine, access, activity, clock } = parts;

  const inTurn = async ({ organization, admin }: Acting, work: () => Promise<boolean>): Promise<boolean> =>
    isOrganizationId(organization.id) && (await database.inTurn(admin?.account.id, work));

  /** Calls `work` with the locked memberships of `accountIds` and the acting user, who must be an owner or admin. */
  async function change(
    tx: Queries,
    { organization, admin }: Acting,
    work: (present: Present) => Promise<boolean>,
    accountIds: readonly string[] = [],
  ): Promise<boolean> {
    const present = await lockedMembers(tx, organization.id, [...(admin ? [admin.account.id] : []), ...accountIds]);
    return (!admin || isAdmin(present.roleOf(admin.account.id))) && (await work(present));
  }

  /**
   * Records the action for the acting user. The record for the concerned user has no network address and browser.
   *
   * @param concerned the user whom the change concerns, if any, and the name of the action in this user's log
   */
  async function record(
    tx: Queries,
    { admin, organization }: Acting,
    action: Action,
    details: NewActivity['details'],
    concerned?: { readonly accountId: string; readonly action: Action },
  ): Promise<void> {
    const { id: organization_id, name: organization_name } = organization;
    const all = { ...details, organization_id, organization_name };
    if (!admin) return activity.record({ action, actor: 'operator', details: all }, tx);
    const { account, origin } = admin;
    await activity.record({ action, actor: 'person', accountId: account.id, details: all, origin }, tx);
    if (!concerned || concerned.accountId === account.id) return;
    const theirs = { ...all, by_account_id: account.id, by_name: account.name };
    await activity.record({ ...concerned, actor: 'organization', details: theirs }, tx);
  }

  const recordFor = (
    tx: Queries,
    by: Acting,
    { id, name }: Named,
    action: Action,
    more: NewActivity['details'] = {},
  ): Promise<void> => record(tx, by, action, { client_id: id, client_name: name, ...more });

  /** Changes what the organization has decided about a client. @param work returns the changed rows */
  async function changeClient(
    by: Acting,
    client: Named,
    work: (tx: Queries) => Promise<readonly unknown[]>,
    action: Action,
    details?: NewActivity['details'],
  ): Promise<boolean> {
    const changing = (tx: Queries) =>
      change(tx, by, async () => {
        if ((await work(tx)).length === 0) return false;
        await recordFor(tx, by, client, action, details);
        return true;
      });
    const isChanged = await inTurn(by, () => database.transaction(changing));
    if (isChanged) access.clientBlocks.forget(client.id);
    return isChanged;
  }

  const decide = (
    tx: Queries,
    { organization, admin }: Acting,
    clients: readonly Named[],
    isApproved: boolean,
    sentence: string | null = null,
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
      [organization.id, clients.map(idOf), isApproved, sentence, new Date(clock()), admin?.account.id ?? null],
    );

  const placeIn = (warehouse: Named | undefined): NewActivity['details'] =>
    warehouse && { warehouse_id: warehouse.id, warehouse_name: warehouse.name };

  return {
    /** Also removes the member's rights in every warehouse. @throws Refusal `owner_protected` or `last_owner` */
    async endMembership(by: ActingAdmin, { id, name }: Named): Promise<boolean> {
      if (!isAccountId(id)) return false;
      const ids = { account_id: id, organization_id: by.organization.id };
      const isEnded = await inTurn(by, () =>
        engine.transaction((tx, now) =>
          change(
            tx,
            by,
            async ({ roleOf, owners }) => {
              if (roleOf(id) === 'owner') {
                if (roleOf(by.admin.account.id) !== 'owner') throw protectedOwner();
                if (owners.every((owner) => owner === id)) throw lastOwner();
              }
              const end = { type: 'membership', ...ids, end: 'removed' } as const;
              if ((await engine.make(tx, now, [end])).differences.length === 0) return false;
              const concerned = { accountId: id, action: 'membership_removed' } as const;
              await record(tx, by, 'member_removed', { person_id: id, person_name: name }, concerned);
              return true;
            },
            [id],
          ),
        ),
      );
      if (isEnded) access.forget(id);
      return isEnded;
    },

    /**
     * Blocks a client in the organization or in one of its warehouses, no matter which users connected it. Each block
     * must be removed separately.
     *
     * @param warehouse absent for the whole organization
     */
    async block(by: Acting, client: Named, warehouse?: Named): Promise<boolean> {
      if (!isClientId(client.id)) return false;
      const { id } = by.organization;
      const made = { at: new Date(clock()), by: by.admin?.account.id };
      const work = (tx: Queries) =>
        warehouse
          ? access.clientBlocks.blockIn(tx, id, warehouse.id, client.id, made)
          : access.clientBlocks.block(tx, id, client.id, made);
      return changeClient(by, client, work, 'client_barred', placeIn(warehouse));
    },

    async unblock(by: Acting, client: Named, warehouse?: Named): Promise<boolean> {
      if (!isClientId(client.id)) return false;
      const { id } = by.organization;
      const work = (tx: Queries) =>
        warehouse
          ? access.clientBlocks.unblockIn(tx, id, warehouse.id, client.id)
          : access.clientBlocks.unblock(tx, id, client.id);
      return changeClient(by, client, work, 'client_admitted', placeIn(warehouse));
    },

    /**
     * Approves the client. If the client is blocked, it stays blocked, because a block has priority over an approval.
     * The log uses the action of `unblock`, with the detail `decision`.
     *
     * @throws Refusal `client_changed`
     */
    approve(by: Acting, client: Named, isAsShown: IsAsShown): Promise<boolean> {
      async function approve(tx: Queries) {
        await requireAsShown(tx, [client], isAsShown);
        return decide(tx, by, [client], true);
      }
      return changeClient(by, client, approve, 'client_admitted', { decision: 'approved' });
    },

    /** @param sentence for the users who have connected the client */
    decline: (by: Acting, client: Named, sentence?: string): Promise<boolean> =>
      changeClient(by, client, (tx) => decide(tx, by, [client], false, sentence), 'client_barred', {
        decision: 'declined',
        ...(sentence !== undefined && { sentence }),
      }),

    /** @param approved clients to approve in the same transaction; nothing changes if `isAsShown` is false for one */
    async setPolicy(
      by: Acting,
      { asksFirst, allowsApiKeys }: OrganizationPolicy,
      approved: readonly Named[] = [],
      isAsShown?: IsAsShown,
    ): Promise<boolean> {
      const { id } = by.organization;
      const set = { asks_first: asksFirst, allows_api_keys: allowsApiKeys };
      const isChanged = await inTurn(by, () =>
        engine.transaction((tx, now) =>
          change(tx, by, async () => {
            if (isAsShown) await requireAsShown(tx, approved, isAsShown);
            const approvals = approved.length > 0 ? await decide(tx, by, approved, true) : [];
            const { differences } = await engine.make(tx, now, [{ type: 'organization', id, set }]);
            if (approvals.length + differences.length === 0) return false;
            const details = { clients: asksFirst ? 'ask' : 'open', api_keys: allowsApiKeys ? 'allow' : 'refuse' };
            await record(tx, by, 'organization_changed', details);
            for (const client of approved) {
              await recordFor(tx, by, client, 'client_admitted', { decision: 'approved' });
            }
            return true;
          }),
        ),
      );
      if (isChanged) {
        for (const client of approved) access.clientBlocks.forget(client.id);
        access.forgetOrganization(id);
      }
      return isChanged;
    },
  };
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
