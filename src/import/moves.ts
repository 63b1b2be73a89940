/** Moves warehouses to another organization; rights of members of that organization are kept. */
import type { Right } from '../accounts/access/reach.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportActivity, ImportFacts, ImportStep, SetLine } from './change.ts';

export interface Move {
  readonly line: SetLine<'warehouse'>;
  /** The warehouse before the move. */
  readonly row: { readonly id: string; readonly organization: string | null };
}

interface RightsRow {
  readonly warehouse_id: string;
  readonly account_id: string | null;
  readonly client_id: string | null;
  /** External id of the account; null if it was not imported. */
  readonly account: string | null;
  /** Email address of the account, or name of the machine client. */
  readonly name: string;
  readonly rights: readonly Right[];
  /** True if the database has the membership in the organization that the warehouse moves to. */
  readonly is_member: boolean;
}

/** Runs after memberships: rights end if neither database nor file has the membership. */
export async function compareMoves(queries: Queries, moves: readonly Move[], facts: ImportFacts): Promise<ImportStep> {
  if (moves.length === 0) return { changes: [], write: async () => [] };
  const { adopted, index } = facts;
  const lineOf = new Map(moves.map(({ line, row }) => [row.id, line]));
  const targets = [
    moves.map(({ row }) => row.id),
    moves.map(({ line }) => line.organization),
    moves.map(({ line }) => adopted.organization.ids.get(line.organization) ?? null),
  ];
  const rows = await queries.query<RightsRow>(
    `SELECT r.warehouse_id, r.account_id, r.client_id, a.external_id AS account,
        coalesce(a.email, c.name) AS name, r.rights,
        EXISTS (SELECT FROM organization_memberships m
          WHERE (m.account_id = r.account_id OR m.client_id = r.client_id)
            AND m.organization_id = coalesce(line.place,
              (SELECT id FROM organizations WHERE external_id = line.organization))) AS is_member
      FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, organization, place)
      JOIN warehouse_rights r ON r.warehouse_id = line.id
      LEFT JOIN accounts a ON a.id = r.account_id
      LEFT JOIN clients c ON c.id = r.client_id
      ORDER BY r.id`,
    targets,
  );
  const subjects = rows.map((row) => ({
    ...row,
    account: (row.account_id && adopted.account.externalIds.get(row.account_id)) ?? row.account,
  }));
  // Look in the file, too: a dry run has not written its memberships to the database.
  const lost = subjects.filter(({ warehouse_id, account, is_member }) => {
    const organization = lineOf.get(warehouse_id)?.organization ?? '';
    return !is_member && (account === null || !index.has({ type: 'membership', account, organization }));
  });

  return {
    changes: [
      ...moves.map(({ line: { external_id, name, organization, number }, row }) => ({
        change: 'changed' as const,
        line: number,
        key: { type: 'warehouse' as const, external_id: external_id ?? row.id },
        name,
        fields: { organization: [row.organization, organization] as const },
      })),
      ...lost.map(({ warehouse_id, account_id, client_id, account, name, rights }) => ({
        change: 'removed' as const,
        line: lineOf.get(warehouse_id)?.number ?? 0,
        key: {
          type: 'warehouse_rights' as const,
          account: account ?? account_id ?? `${client_id}`,
          warehouse: lineOf.get(warehouse_id)?.external_id ?? warehouse_id,
        },
        name,
        fields: { rights: [rights, null] as const },
      })),
    ],
    async write(tx) {
      const ids = moves.map(({ row }) => row.id);
      // Rights reference memberships of the organization: delete them, insert the kept ones below.
      await tx.query('DELETE FROM warehouse_rights WHERE warehouse_id = ANY($1)', [ids]);
      const moved = await tx.query<{ id: string; name: string; organization_id: string }>(
        `UPDATE warehouses w SET organization_id = o.id
          FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, organization, place)
          JOIN organizations o ON o.id = coalesce(line.place,
            (SELECT id FROM organizations WHERE external_id = line.organization))
          WHERE w.id = line.id RETURNING w.id, w.name, w.organization_id`,
        targets,
      );
      const kept = subjects.filter((row) => !lost.includes(row));
      await tx.query(
        `INSERT INTO warehouse_rights (account_id, client_id, organization_id, warehouse_id, rights)
          SELECT r.account_id, r.client_id, w.organization_id, w.id, string_to_array(r.rights, ',')
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
            AS r (account_id, client_id, warehouse_id, rights)
          JOIN warehouses w ON w.id = r.warehouse_id`,
        [
          kept.map((row) => row.account_id),
          kept.map((row) => row.client_id),
          kept.map((row) => row.warehouse_id),
          kept.map((row) => row.rights.join()),
        ],
      );
      return [
        ...moved.map(({ id, name, organization_id }) => ({
          action: 'warehouse_changed' as const,
          details: { warehouse_id: id, warehouse_name: name, organization_id },
        })),
        ...lost.map(recordOf),
      ];
    },
  };
}

const recordOf = ({ account_id, client_id, warehouse_id }: RightsRow): ImportActivity => ({
  action: 'membership_removed',
  ...(account_id !== null && { accountId: account_id }),
  details: { warehouse_id, ...(client_id !== null && { client_id }) },
});
