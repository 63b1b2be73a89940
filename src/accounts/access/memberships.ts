/** The members of organizations, their roles, and their rights in warehouses. */
import type { Clock } from '../../base/clock.ts';
import { Refusal, refuseViolations } from '../../base/refusal.ts';
import type { Database, InTransaction } from '../../storage/queries.ts';
import { type Changed, knownChange, recordChanges } from '../known-times.ts';
import { isOrganizationId, isWarehouseId, unknownOrganization, unknownWarehouse } from '../organizations/places.ts';
import { RIGHTS, type Right, ROLES, type Role, type Subject, type SubjectColumn, subjectColumn } from './reach.ts';

export type Memberships = ReturnType<typeof createMemberships>;

/** Each change is in force from the next request. Repeating a change does and records nothing. */
export function createMemberships(parts: { readonly database: Database; readonly clock: Clock }) {
  const { database, clock } = parts;

  /**
   * Runs a statement that returns the changed rows, then `inTransaction` if there are any. A repeated
   * change counts as known from now on, too.
   */
  async function change(
    statement: string,
    values: readonly unknown[],
    changed: Changed,
    inTransaction?: InTransaction,
  ): Promise<boolean> {
    return knownChange(database, undefined, async (tx, at) => {
      const rows = await tx.query(statement, values);
      // Lines do not name machine clients.
      if (changed.account !== undefined) await recordChanges(tx, at, changed);
      if (rows.length === 0) return false;
      await inTransaction?.(tx);
      return true;
    });
  }

  return {
    /**
     * Makes the subject a member, or changes its role.
     *
     * @throws Refusal `role_unknown`, `subject_unknown`, `organization_unknown` or `not_a_machine`
     */
    async setRole(subject: Subject, organizationId: string, role: Role, inTransaction?: InTransaction): Promise<void> {
      if (!ROLES.includes(role)) throw unknownRole(role);
      const [column, id] = knownSubject(subject);
      if (!isOrganizationId(organizationId)) throw unknownOrganization(organizationId);
      if (column === 'client_id') await requireMachineClient(id);
      await refuseViolations(
        {
          organization_memberships_account_id_fkey: () => unknownSubject(subject),
          organization_memberships_client_id_fkey: () => unknownSubject(subject),
          organization_memberships_organization_id_fkey: () => unknownOrganization(organizationId),
        },
        change(
          `INSERT INTO organization_memberships AS m (${column}, organization_id, role, created_at)
            VALUES ($1, $2, $3, $4)
            ON CONFLICT (${column}, organization_id) DO UPDATE SET role = excluded.role
              WHERE m.role <> excluded.role
            RETURNING 1`,
          [id, organizationId, role, new Date(clock())],
          { type: 'membership', account: accountOf(subject), organization: organizationId },
          inTransaction,
        ),
      );
    },

    /** Ends the membership and the rights in every warehouse of the organization. */
    async remove(subject: Subject, organizationId: string, inTransaction?: InTransaction): Promise<void> {
      const column = subjectColumn(subject);
      if (column === undefined || !isOrganizationId(organizationId)) return;
      await change(
        `DELETE FROM organization_memberships WHERE ${column[0]} = $1 AND organization_id = $2
          RETURNING 1`,
        [column[1], organizationId],
        { type: 'membership', account: accountOf(subject), organization: organizationId, end: 'ended' },
        inTransaction,
      );
    },

    /**
     * Replaces the rights in a warehouse. Owners and admins have all rights anyway; viewers only
     * `read`.
     *
     * @throws Refusal `rights_unknown`, `subject_unknown`, `warehouse_unknown` or
     *   `membership_missing`
     */
    async setRights(
      subject: Subject,
      warehouseId: string,
      rights: readonly Right[],
      inTransaction?: InTransaction,
    ): Promise<void> {
      if (rights.length === 0 || !rights.every((right) => RIGHTS.includes(right))) {
        throw unknownRights(rights);
      }
      const [column, id] = knownSubject(subject);
      if (!isWarehouseId(warehouseId)) throw unknownWarehouse(warehouseId);
      const isChanged = await refuseViolations(
        {
          // Let the database decide, because another request may remove the membership just now.
          warehouse_rights_account_membership_fkey: () => missingMembership(warehouseId),
          warehouse_rights_client_membership_fkey: () => missingMembership(warehouseId),
        },
        change(
          `INSERT INTO warehouse_rights AS r (${column}, organization_id, warehouse_id, rights)
            SELECT $1, organization_id, id, $3 FROM warehouses WHERE id = $2
            ON CONFLICT (${column}, warehouse_id) DO UPDATE SET rights = excluded.rights
              WHERE r.rights <> excluded.rights
            RETURNING 1`,
          [id, warehouseId, RIGHTS.filter((right) => rights.includes(right))],
          { type: 'warehouse_rights', account: accountOf(subject), warehouse: warehouseId },
          inTransaction,
        ),
      );
      if (!isChanged) await requireWarehouse(warehouseId);
    },

    async removeRights(subject: Subject, warehouseId: string, inTransaction?: InTransaction): Promise<void> {
      const column = subjectColumn(subject);
      if (column === undefined || !isWarehouseId(warehouseId)) return;
      await change(
        `DELETE FROM warehouse_rights WHERE ${column[0]} = $1 AND warehouse_id = $2 RETURNING 1`,
        [column[1], warehouseId],
        { type: 'warehouse_rights', account: accountOf(subject), warehouse: warehouseId, end: 'ended' },
        inTransaction,
      );
    },
  };

  async function requireWarehouse(id: string): Promise<void> {
    const known = await database.query('SELECT FROM warehouses WHERE id = $1', [id]);
    if (known.length === 0) throw unknownWarehouse(id);
  }

  /** The kind of a client never changes, so it is safe to check it first. */
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

const accountOf = (subject: Subject): string | undefined => ('accountId' in subject ? subject.accountId : undefined);

function knownSubject(subject: Subject): SubjectColumn {
  const column = subjectColumn(subject);
  if (column === undefined) throw unknownSubject(subject);
  return column;
}

function unknownSubject(subject: Subject): Refusal {
  const shown = 'accountId' in subject ? `account ${subject.accountId}` : `client ${subject.clientId}`;
  return new Refusal('subject_unknown', `There is no ${shown}.`, 'Add it first.');
}

function unknownRole(role: string): Refusal {
  return new Refusal('role_unknown', `There is no role ${JSON.stringify(role)}.`, `Use one of ${ROLES.join(', ')}.`);
}

function unknownRights(rights: readonly string[]): Refusal {
  return new Refusal(
    'rights_unknown',
    `${JSON.stringify(rights)} is not a valid set of rights.`,
    `Use one or more of ${RIGHTS.join(', ')}, or remove the rights in the warehouse.`,
  );
}

function missingMembership(warehouseId: string): Refusal {
  return new Refusal(
    'membership_missing',
    `Rights in warehouse ${warehouseId} need a membership in its organization.`,
    'Set a role in the organization first (member or viewer), then the rights.',
  );
}
