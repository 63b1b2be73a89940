/** The organizations that owners of clients may join, so that their first call finds some stock. */
import type { Clock } from '../../base/clock.ts';
import { byName } from '../../storage/pages.ts';
import type { Database, InTransaction, Queries } from '../../storage/queries.ts';
import { knownChange, recordChanges } from '../known-times.ts';
import type { Access } from './access.ts';

export type TestOrganizations = ReturnType<typeof createTestOrganizations>;

/** @param parts.ids the organizations that the operator names in the settings */
export function createTestOrganizations(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly access: Pick<Access, 'forget'>;
  readonly ids: readonly string[];
}) {
  const { database, clock, access, ids } = parts;
  return {
    /** Lists the test organizations in which the account is not a member, or only a viewer. */
    listFor: (accountId: string) =>
      database.query<{ id: string; name: string; isViewer: boolean }>(
        `SELECT o.id, o.name, m.role IS NOT NULL AS "isViewer" FROM organizations o
          LEFT JOIN organization_memberships m ON m.organization_id = o.id AND m.account_id = $2
          WHERE o.id = ANY($1) AND coalesce(m.role, 'viewer') = 'viewer'
          ORDER BY ${byName('o.name')}, o.id`,
        [ids, accountId],
      ),

    /** Makes the account a viewer who can read each warehouse, or ends this membership. */
    async change(to: 'join' | 'leave', [accountId, id]: [string, string], record: InTransaction) {
      const [statement, more] = to === 'join' ? [JOIN, [new Date(clock())]] : [LEAVE, []];
      await knownChange(database, accountId, async (tx, at) => {
        const changed = await tx.query<{ warehouse: string | null }>(statement, [accountId, id, ...more]);
        if (changed.length === 0) return;
        const membership = { type: 'membership', account: accountId, organization: id } as const;
        const rights = changed.flatMap(({ warehouse }) =>
          warehouse ? [{ type: 'warehouse_rights', account: accountId, warehouse } as const] : [],
        );
        await recordChanges(tx, at, { ...membership, ...(to === 'leave' && { end: 'ended' }) }, ...rights);
        await record(tx);
      });
      access.forget(accountId);
    },
  };
}

const JOIN = `WITH joined AS (
    INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
      SELECT a.id, o.id, 'viewer', $3 FROM accounts a, organizations o
        WHERE a.id = $1 AND a.suspended_at IS NULL AND o.id = $2 FOR KEY SHARE
      ON CONFLICT DO NOTHING RETURNING account_id, organization_id
  ), reading AS (
    INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
      SELECT account_id, organization_id, w.id, '{read}'
        FROM joined JOIN warehouses w USING (organization_id) FOR KEY SHARE OF w
      RETURNING warehouse_id
  ) SELECT warehouse_id AS warehouse FROM joined LEFT JOIN reading ON true`;
// Deletes only the role that `JOIN` gives. Any other was given by an owner or admin of the organization.
const LEAVE = `DELETE FROM organization_memberships
  WHERE account_id = $1 AND organization_id = $2 AND role = 'viewer' RETURNING NULL AS warehouse`;

/** Returns the ids that belong to no organization. */
export const unknownOrganizations = (database: Queries, ids: readonly string[]) =>
  database.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id
      WHERE (SELECT o.id FROM organizations o WHERE o.id = id.id) IS NULL ORDER BY id`,
    [ids],
  );
