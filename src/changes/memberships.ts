/** The members of organizations, their roles, and their rights in warehouses. */
import { RIGHTS, type Right, type Role, type Subject, subjectColumn } from '../accounts/access/reach.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import { findPlace, unknownOrganization } from '../accounts/organizations/places.ts';
import { Refusal, refuseViolations } from '../base/refusal.ts';
import type { Database } from '../storage/queries.ts';
import type { Ids } from './change.ts';
import type { Changes } from './engine.ts';

interface NewAccess {
  readonly organization?: { readonly id: string; readonly role: Role } | undefined;
  readonly warehouse?: { readonly id: string; readonly rights: readonly Right[] } | undefined;
}

/** Changes of memberships take effect at the next request. A repeated change only updates the recorded time. */
export function createMemberships(parts: {
  readonly database: Database;
  readonly engine: Changes;
  readonly activity: Pick<Activity, 'recordAll'>;
}) {
  const { database, engine, activity } = parts;
  const options = { by: { actor: 'operator' }, activity } as const;

  /**
   * In one transaction, makes the subject a member or changes its role, and replaces its rights in a warehouse. Owners
   * and admins always have all rights, and viewers can have only `read`.
   * @throws Refusal `subject_unknown`, `organization_unknown`, `warehouse_unknown`, `membership_missing` or
   *   `not_a_machine`
   */
  async function set(subject: Subject, { organization, warehouse }: NewAccess): Promise<void> {
    const rights = RIGHTS.filter((right) => warehouse?.rights.includes(right));
    const ids = idsOf(subject);
    if (ids.client_id !== undefined) await requireMachineClient(ids.client_id);
    await refuseViolations(
      {
        organization_memberships_account_id_fkey: () => unknownSubject(subject),
        organization_memberships_client_id_fkey: () => unknownSubject(subject),
        organization_memberships_organization_id_fkey: () => unknownOrganization(`${organization?.id}`),
        warehouse_rights_account_membership_fkey: () => missingMembership(`${warehouse?.id}`),
        warehouse_rights_client_membership_fkey: () => missingMembership(`${warehouse?.id}`),
      },
      engine.transaction(async (tx, now) => {
        if (organization) {
          const { role, id: organization_id } = organization;
          await findPlace(tx, 'organization', organization_id);
          await engine.make(tx, now, [{ type: 'membership', ...ids, organization_id, set: { role } }], options);
        }
        if (!warehouse) return;
        const place = await findPlace(tx, 'warehouse', warehouse.id);
        const places = { organization_id: place.organization.id, warehouse_id: place.id };
        await engine.make(tx, now, [{ type: 'warehouse_rights', ...ids, ...places, set: { rights } }], options);
      }),
    );
  }

  async function remove(type: 'membership' | 'warehouse_rights', subject: Subject, place: Ids): Promise<void> {
    const ids = { ...idsOf(subject), ...place };
    await engine.transaction((tx, now) => engine.make(tx, now, [{ type, ...ids, end: 'removed' }], options));
  }

  return {
    set,

    /** Ends the membership and the rights in every warehouse of the organization. */
    remove: (subject: Subject, organization_id: string) => remove('membership', subject, { organization_id }),

    removeRights: (subject: Subject, warehouse_id: string) => remove('warehouse_rights', subject, { warehouse_id }),
  };

  /** Takes no lock, because the kind of a client never changes. */
  async function requireMachineClient(id: string): Promise<void> {
    const [client] = await database.query<{ kind: string }>('SELECT kind FROM clients WHERE id = $1', [id]);
    if (client === undefined || client.kind === 'machine') return;
    throw new Refusal(
      'not_a_machine',
      `The ${client.kind} client ${id} cannot be a member: it reaches only what the people who approve it reach.`,
      'Give the membership to the person, or to a machine client.',
    );
  }
}

/** @throws Refusal `subject_unknown` */
function idsOf(subject: Subject): Ids {
  const column = subjectColumn(subject);
  if (column === undefined) throw unknownSubject(subject);
  return { [column[0]]: column[1] };
}

function unknownSubject(subject: Subject): Refusal {
  const shown = 'accountId' in subject ? `account ${subject.accountId}` : `client ${subject.clientId}`;
  return new Refusal('subject_unknown', `There is no ${shown}.`, 'Add it first.');
}

const missingMembership = (warehouseId: string): Refusal =>
  new Refusal(
    'membership_missing',
    `Rights in warehouse ${warehouseId} need a membership in its organization.`,
    'Set a role in the organization first (member or viewer), then the rights.',
  );
