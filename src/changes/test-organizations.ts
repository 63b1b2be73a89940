/** Test organizations, which owners of clients may join so that their first API call returns data. */
import type { Access } from '../accounts/access/access.ts';
import type { Role } from '../accounts/access/reach.ts';
import { byName } from '../storage/pages.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import type { Changes } from './engine.ts';

export type TestOrganizations = ReturnType<typeof createTestOrganizations>;

/** @param parts.ids the test organizations that the settings name */
export function createTestOrganizations(parts: {
  readonly database: Database;
  readonly engine: Changes;
  readonly access: Pick<Access, 'forget'>;
  readonly ids: readonly string[];
}) {
  const { database, engine, access, ids } = parts;
  return {
    /** Lists the test organizations in which the account is not a member, or only a viewer. */
    listFor: (accountId: string) =>
      database.query<{ id: string; name: string; isViewer: boolean }>(
        `SELECT o.id, o.name, m.role IS NOT NULL AS "isViewer" FROM organizations o
          LEFT JOIN organization_memberships m ON m.organization_id = o.id AND m.account_id = $2
          WHERE o.id = ANY($1) AND o.ended_at IS NULL AND coalesce(m.role, 'viewer') = 'viewer'
          ORDER BY ${byName('o.name')}, o.id`,
        [ids, accountId],
      ),

    /** Makes the account a viewer of all warehouses of the organization (`join`), or ends the membership (`leave`). */
    async change(to: 'join' | 'leave', [account_id, organization_id]: [string, string], record: InTransaction) {
      const membership = { type: 'membership', account_id, organization_id } as const;
      await database.inTurn(account_id, () =>
        engine.transaction(async (tx, now) => {
          const [found] = await tx.query<{ role: Role | null; warehouses: string[] }>(
            `SELECT m.role, ARRAY(SELECT w.id FROM warehouses w
                WHERE w.organization_id = o.id AND w.ended_at IS NULL) AS warehouses
              FROM organizations o JOIN accounts a ON a.id = $1 AND ($3 OR a.suspended_at IS NULL)
              LEFT JOIN organization_memberships m ON m.account_id = a.id AND m.organization_id = o.id
              WHERE o.id = $2 AND o.ended_at IS NULL`,
            [account_id, organization_id, to === 'leave'],
          );
          // `leave` ends only the role that `join` gives: every other role comes from an owner, admin or operator.
          if (!found || found.role !== (to === 'join' ? null : 'viewer')) return;
          if (to === 'leave') await engine.make(tx, now, [{ ...membership, end: 'removed' }]);
          else {
            await engine.make(tx, now, [{ ...membership, set: { role: 'viewer' } }]);
            const right = { ...membership, type: 'warehouse_rights', set: { rights: ['read'] } } as const;
            await engine.make(
              tx,
              now,
              found.warehouses.map((warehouse_id) => ({ ...right, warehouse_id })),
            );
          }
          await record(tx);
        }),
      );
      access.forget(account_id);
    },
  };
}

/** Returns the ids for which there is no organization. An organization is ignored once its deletion has begun. */
export const unknownOrganizations = (database: Queries, ids: readonly string[]) =>
  database.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id
      WHERE (SELECT o.id FROM organizations o WHERE o.id = id.id AND o.ended_at IS NULL) IS NULL ORDER BY id`,
    [ids],
  );
