/** Lets owners and admins see and end access to their organization, and records each end. */
import type { OrganizationEnds } from '../accounts/access/organization-ends.ts';
import type { Account } from '../accounts/account.ts';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { Action } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import type { Queries } from '../storage/queries.ts';
import {
  membersConnectedTo,
  type OrganizationReach,
  reachOfOrganization,
} from './organization-reach.ts';

/** The acting owner or admin. */
export interface ActingAdmin {
  readonly account: Pick<Account, 'id' | 'name'>;
  readonly origin: Origin;
  readonly organization: Named;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

export type OrganizationEndings = ReturnType<typeof createOrganizationEndings>;

/** Like `OrganizationEnds`, and records each change in the activity logs. */
export function createOrganizationEndings(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly activity: Activity;
  readonly ends: OrganizationEnds;
}) {
  const { database, clock, activity, ends } = parts;

  const whose = ({ account, organization }: ActingAdmin) => ({
    organizationId: organization.id,
    by: account.id,
  });

  /** Records the action for the admin and, without the origin, for the users concerned. */
  async function record(
    tx: Queries,
    { account, origin, organization }: ActingAdmin,
    [own, others]: readonly [Action, Action],
    details: NewActivity['details'],
    concerned: readonly string[],
  ): Promise<void> {
    const all = {
      ...details,
      organization_id: organization.id,
      organization_name: organization.name,
    };
    await activity.record(
      { action: own, actor: 'person', accountId: account.id, details: all, origin },
      tx,
    );
    const theirs = { ...all, by_account_id: account.id, by_name: account.name };
    const entries = concerned
      .filter((id) => id !== account.id)
      .map((accountId) => ({ action: others, actor: 'organization', accountId, details: theirs }));
    await activity.recordAll(entries as NewActivity[], tx);
  }

  const changing =
    (change: 'block' | 'unblock', action: Action) =>
    (by: ActingAdmin, { id: clientId, name }: Named): Promise<boolean> =>
      ends[change]({
        ...whose(by),
        clientId,
        async inTransaction(tx) {
          const concerned = await membersConnectedTo(tx, by.organization.id, clientId);
          const details = { client_id: clientId, client_name: name };
          await record(tx, by, [action, action], details, concerned);
        },
      });

  return {
    reachOf: (organizationId: string): Promise<OrganizationReach> =>
      reachOfOrganization(database, organizationId, new Date(clock())),

    endMembership: (by: ActingAdmin, { id: accountId, name }: Named): Promise<boolean> =>
      ends.endMembership({
        ...whose(by),
        accountId,
        async inTransaction(tx) {
          const details = { person_id: accountId, person_name: name };
          await record(tx, by, ['member_removed', 'membership_removed'], details, [accountId]);
        },
      }),

    block: changing('block', 'client_barred'),
    unblock: changing('unblock', 'client_admitted'),
  };
}
