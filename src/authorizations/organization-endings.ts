/** Changes what has access to an organization, for owners, admins and operators, and records each change. */
import type { Account } from '../accounts/account.ts';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { Action } from '../accounts/activity/activity-words.ts';
import type { OrganizationPolicy } from '../accounts/organizations/organization-policy.ts';
import { changedMeanwhile } from '../clients/client-edits.ts';
import type { Queries } from '../storage/queries.ts';
import { type ApprovableClient, approvableClients } from './client-standing.ts';
import type { OrganizationEnds } from './organization-ends.ts';

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
const requireAsShown =
  (clients: readonly Named[], isAsShown: IsAsShown) =>
  async (tx: Queries): Promise<void> => {
    const ids = clients.map(({ id }) => id);
    const present = await approvableClients(tx, ids, 'FOR SHARE');
    if (!present.every(isAsShown)) throw changedMeanwhile();
  };

export type OrganizationEndings = ReturnType<typeof createOrganizationEndings>;

export function createOrganizationEndings(parts: { readonly activity: Activity; readonly ends: OrganizationEnds }) {
  const { activity, ends } = parts;

  const whose = ({ admin, organization }: Acting) => ({
    organizationId: organization.id,
    by: admin?.account.id,
  });

  /**
   * Records the action for the acting user, and for the user concerned without the network address and browser.
   *
   * @param concerned the user whom the change concerns, if it is one, and the action in their log
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

  const recordFor =
    (by: Acting, { id: clientId, name }: Named, action: Action, more: NewActivity['details'] = {}) =>
    (tx: Queries): Promise<void> =>
      record(tx, by, action, { client_id: clientId, client_name: name, ...more });

  const changing =
    (change: 'block' | 'unblock', action: Action) =>
    (by: Acting, client: Named, warehouse?: Named): Promise<boolean> =>
      ends[change]({
        ...whose(by),
        clientId: client.id,
        warehouseId: warehouse?.id,
        inTransaction: recordFor(
          by,
          client,
          action,
          warehouse && { warehouse_id: warehouse.id, warehouse_name: warehouse.name },
        ),
      });

  return {
    endMembership: (by: ActingAdmin, { id: accountId, name }: Named): Promise<boolean> =>
      ends.endMembership({
        organizationId: by.organization.id,
        by: by.admin.account.id,
        accountId,
        async inTransaction(tx) {
          const details = { person_id: accountId, person_name: name };
          await record(tx, by, 'member_removed', details, { accountId, action: 'membership_removed' });
        },
      }),

    /** @param warehouse absent for the whole organization */
    block: changing('block', 'client_barred'),
    unblock: changing('unblock', 'client_admitted'),

    /** The log has the decision as a block or the end of a block, with a detail. @throws Refusal `client_changed` */
    approve: (by: ActingAdmin, client: Named, isAsShown: IsAsShown): Promise<boolean> =>
      ends.decide({
        ...whose(by),
        clientId: client.id,
        isApproved: true,
        check: requireAsShown([client], isAsShown),
        inTransaction: recordFor(by, client, 'client_admitted', { decision: 'approved' }),
      }),

    decline: (by: Acting, client: Named, sentence?: string): Promise<boolean> =>
      ends.decide({
        ...whose(by),
        clientId: client.id,
        isApproved: false,
        sentence,
        inTransaction: recordFor(by, client, 'client_barred', {
          decision: 'declined',
          ...(sentence !== undefined && { sentence }),
        }),
      }),

    /** @param approved clients to approve in the same transaction, if they are as in `isAsShown` */
    setPolicy: (
      by: Acting,
      policy: OrganizationPolicy,
      approved: readonly Named[] = [],
      isAsShown?: IsAsShown,
    ): Promise<boolean> =>
      ends.setPolicy({
        ...whose(by),
        policy,
        check: isAsShown && requireAsShown(approved, isAsShown),
        approved: approved.map(({ id }) => id),
        async inTransaction(tx) {
          const details = {
            clients: policy.asksFirst ? 'ask' : 'open',
            api_keys: policy.allowsApiKeys ? 'allow' : 'refuse',
          };
          await record(tx, by, 'organization_changed', details);
          for (const client of approved) {
            await recordFor(by, client, 'client_admitted', { decision: 'approved' })(tx);
          }
        },
      }),
  };
}
