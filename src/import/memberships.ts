/** Compares the memberships and rights of an import with the database, and writes differences. */

import type { ImportKey, LineOf, Numbered } from '../changes/line.ts';
import type { Queries } from '../storage/queries.ts';
import { type AdoptedType, adoptedIds, columnsOf, type ImportFacts, type ImportStep } from './change.ts';

type AccessType = 'membership' | 'warehouse_rights';
type AccessLine = Numbered<LineOf<AccessType>>;

/** An id is null if its thing is yet to be added: only in a comparison that writes nothing. */
interface AccessRow {
  readonly position: string;
  readonly account_id: string | null;
  readonly organization_id: string | null;
  readonly organization_name: string | null;
  readonly warehouse_id?: string | null;
  readonly warehouse_name?: string | null;
  /** The current role or rights. */
  readonly present: string | readonly string[] | null;
}

/** The place that a line is about, the access that it grants, and the SQL to read and write it. */
const ACCESS = {
  membership: {
    place: 'organization',
    gives: 'role',
    read: `o.id AS organization_id, o.name AS organization_name, m.role AS present`,
    joins: `LEFT JOIN organizations o ON o.id = coalesce(line.adopted_place,
        (SELECT id FROM organizations WHERE external_id = line.place))
      LEFT JOIN organization_memberships m ON m.account_id = a.id AND m.organization_id = o.id`,
    write: `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
      SELECT account_id, organization_id, given, $5
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        AS line (account_id, organization_id, warehouse_id, given)
      ON CONFLICT (account_id, organization_id) DO UPDATE SET role = excluded.role`,
  },
  warehouse_rights: {
    place: 'warehouse',
    gives: 'rights',
    read: `o.id AS organization_id, o.name AS organization_name,
        w.id AS warehouse_id, w.name AS warehouse_name, r.rights AS present`,
    joins: `LEFT JOIN warehouses w ON w.id = coalesce(line.adopted_place,
        (SELECT id FROM warehouses WHERE external_id = line.place))
      LEFT JOIN organizations o ON o.id = w.organization_id
      LEFT JOIN warehouse_rights r ON r.account_id = a.id AND r.warehouse_id = w.id`,
    write: `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
      SELECT account_id, organization_id, warehouse_id, string_to_array(given, ',')
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        AS line (account_id, organization_id, warehouse_id, given)
      ON CONFLICT (account_id, warehouse_id) DO UPDATE SET rights = excluded.rights`,
  },
} as const;

export const compareAccess =
  (type: AccessType) =>
  async (queries: Queries, lines: readonly AccessLine[], facts: ImportFacts): Promise<ImportStep> => {
    const { place, gives, read, joins, write } = ACCESS[type];
    const referring = (to: AdoptedType): unknown[][] => {
      const [ids = []] = columnsOf(lines, to);
      return [ids, adoptedIds(facts, to, ids as string[])];
    };
    const rows = await queries.query<AccessRow>(
      `SELECT line.position, a.id AS account_id, ${read}
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
          AS line (account, adopted, place, adopted_place, position)
        LEFT JOIN accounts a ON a.id = coalesce(line.adopted,
          (SELECT id FROM accounts WHERE external_id = line.account))
        ${joins}
        ORDER BY line.position`,
      [...referring('account'), ...referring(place)],
    );
    const found = rows.flatMap((row) => {
      const line = lines[Number(row.position) - 1];
      const given = line && ('role' in line ? line.role : line.rights);
      return given && String(given) !== String(row.present) ? [{ ...row, line, given }] : [];
    });

    return {
      changes: found.map(({ line, present, given }) => ({
        change: present === null ? 'added' : 'changed',
        line: line.number,
        key: keyOf(line),
        fields: { [gives]: [present, given] },
      })),
      async write(tx) {
        const written = found.map((row) => ({ ...row, given: String(row.given) }));
        await tx.query(write, [
          ...columnsOf(written, 'account_id', 'organization_id', 'warehouse_id', 'given'),
          ...(type === 'membership' ? [facts.now] : []),
        ]);
        return found.map(({ account_id, given, ...row }) => ({
          action: 'membership_set',
          accountId: `${account_id}`,
          details: {
            organization_id: `${row.organization_id}`,
            organization_name: `${row.organization_name}`,
            ...(type === 'warehouse_rights' && {
              warehouse_id: `${row.warehouse_id}`,
              warehouse_name: `${row.warehouse_name}`,
            }),
            [gives]: given,
          },
        }));
      },
    };
  };

const keyOf = (line: AccessLine): ImportKey =>
  line.type === 'membership'
    ? { type: line.type, account: line.account, organization: line.organization }
    : { type: line.type, account: line.account, warehouse: line.warehouse };
