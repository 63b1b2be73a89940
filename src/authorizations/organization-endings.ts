/** Lets owners and admins see and end access to their organization, recorded in all logs. */
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
export interface InCharge {
  readonly account: Pick<Account, 'id' | 'name'>;
  readonly origin: Origin;
  readonly organization: Named;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

export type OrganizationEndings = ReturnType<typeof createOrganizationEndings>;

/** See `OrganizationEnds`. */
export function createOrganizationEndings(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly activity: Activity;
  readonly ends: OrganizationEnds;
}) {
  const { database, clock, activity, ends } = parts;

  const whose = ({ account, organization }: InCharge) => ({
    organizationId: organization.id,
    by: account.id,
  });

  /** Records it in the log of the owner or admin, and without their origin in those concerned. */
  async function record(
    tx: Queries,
    { account, origin, organization }: InCharge,
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
    (change: 'bar' | 'admit', action: Action) =>
    (by: InCharge, { id: clientId, name }: Named): Promise<boolean> =>
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

    endMembership: (by: InCharge, { id: accountId, name }: Named): Promise<boolean> =>
      ends.endMembership({
        ...whose(by),
        accountId,
        async inTransaction(tx) {
          const details = { person_id: accountId, person_name: name };
          await record(tx, by, ['member_removed', 'membership_removed'], details, [accountId]);
        },
      }),

    bar: changing('bar', 'client_barred'),
    admit: changing('admit', 'client_admitted'),
  };
}
