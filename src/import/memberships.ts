/** Memberships and rights of an import: compared with those that there are, and written. */

import type { Right, Role } from '../accounts/access/reach.ts';
import type { Queries } from '../storage/queries.ts';
import {
  type AdoptedType,
  adoptedIds,
  type ImportActivity,
  type ImportChange,
  type ImportFacts,
  type ImportStep,
} from './change.ts';
import type { LineOf } from './line.ts';
import type { Numbered } from './source.ts';

type MembershipLine = Numbered<LineOf<'membership'>>;
type RightsLine = Numbered<LineOf<'warehouse_rights'>>;

/** Ids are null as long as something is not there yet, which is so only while nothing is written. */
interface Place {
  readonly position: string;
  readonly account_id: string | null;
  readonly organization_id: string | null;
  readonly organization_name: string | null;
}

const JOIN_ACCOUNT = `LEFT JOIN accounts a ON a.id = coalesce(line.adopted,
        (SELECT id FROM accounts WHERE external_id = line.account))`;
const joinPlace = (table: 'organizations' | 'warehouses', as: string, column: string): string =>
  `LEFT JOIN ${table} ${as} ON ${as}.id = coalesce(line.place,
        (SELECT id FROM ${table} WHERE external_id = line.${column}))`;

export async function compareMemberships(
  queries: Queries,
  lines: readonly MembershipLine[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const rows = await queries.query<Place & { role: Role | null }>(
    `SELECT line.position, a.id AS account_id, o.id AS organization_id,
        o.name AS organization_name, m.role
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
        AS line (account, adopted, organization, place, position)
      ${JOIN_ACCOUNT}
      ${joinPlace('organizations', 'o', 'organization')}
      LEFT JOIN organization_memberships m ON m.account_id = a.id AND m.organization_id = o.id
      ORDER BY line.position`,
    [...columnsOf(lines, 'account', facts), ...columnsOf(lines, 'organization', facts)],
  );
  const found = differing(lines, rows, ({ role }, row) => role !== row.role);

  return {
    changes: found.map(({ line: { account, organization, role }, row }) =>
      changeOf({ type: 'membership', account, organization }, { role: [row.role, role] }),
    ),
    async write(tx) {
      await tx.query(
        `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
          SELECT account_id, organization_id, role, $4
          FROM unnest($1::text[], $2::text[], $3::text[]) AS line (account_id, organization_id, role)
          ON CONFLICT (account_id, organization_id) DO UPDATE SET role = excluded.role`,
        [
          found.map(({ row }) => row.account_id),
          found.map(({ row }) => row.organization_id),
          found.map(({ line }) => line.role),
          facts.now,
        ],
      );
      return found.map(({ line, row }) => recordOf(row, { role: line.role }));
    },
  };
}

export async function compareRights(
  queries: Queries,
  lines: readonly RightsLine[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const rows = await queries.query<
    Place & {
      warehouse_id: string | null;
      warehouse_name: string | null;
      rights: readonly Right[] | null;
    }
  >(
    `SELECT line.position, a.id AS account_id, o.id AS organization_id,
        o.name AS organization_name, w.id AS warehouse_id, w.name AS warehouse_name, r.rights
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
        AS line (account, adopted, warehouse, place, position)
      ${JOIN_ACCOUNT}
      ${joinPlace('warehouses', 'w', 'warehouse')}
      LEFT JOIN organizations o ON o.id = w.organization_id
      LEFT JOIN warehouse_rights r ON r.account_id = a.id AND r.warehouse_id = w.id
      ORDER BY line.position`,
    [...columnsOf(lines, 'account', facts), ...columnsOf(lines, 'warehouse', facts)],
  );
  const found = differing(lines, rows, ({ rights }, row) => rights.join() !== row.rights?.join());

  return {
    changes: found.map(({ line: { account, warehouse, rights }, row }) =>
      changeOf({ type: 'warehouse_rights', account, warehouse }, { rights: [row.rights, rights] }),
    ),
    async write(tx) {
      await tx.query(
        `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
          SELECT account_id, organization_id, warehouse_id, string_to_array(rights, ',')
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
            AS line (account_id, organization_id, warehouse_id, rights)
          ON CONFLICT (account_id, warehouse_id) DO UPDATE SET rights = excluded.rights`,
        [
          found.map(({ row }) => row.account_id),
          found.map(({ row }) => row.organization_id),
          found.map(({ row }) => row.warehouse_id),
          found.map(({ line }) => line.rights.join()),
        ],
      );
      return found.map(({ line, row }) =>
        recordOf(row, {
          warehouse_id: `${row.warehouse_id}`,
          warehouse_name: `${row.warehouse_name}`,
          rights: line.rights,
        }),
      );
    },
  };
}

/** The external ids that lines refer to, and the ids of those that do not have them yet. */
function columnsOf<Type extends AdoptedType>(
  lines: readonly Readonly<Record<Type, string>>[],
  type: Type,
  facts: ImportFacts,
): [string[], (string | null)[]] {
  const externalIds = lines.map((line): string => line[type]);
  return [externalIds, adoptedIds(facts, type, externalIds)];
}

function differing<Line, Row extends Place>(
  lines: readonly Line[],
  rows: readonly Row[],
  differs: (line: Line, row: Row) => boolean,
): { line: Line; row: Row }[] {
  return rows.flatMap((row) => {
    const line = lines[Number(row.position) - 1];
    return line !== undefined && differs(line, row) ? [{ line, row }] : [];
  });
}

function changeOf(
  key: ImportChange['key'],
  fields: NonNullable<ImportChange['fields']>,
): ImportChange {
  const isNew = Object.values(fields).every(([before]) => before === null);
  return { change: isNew ? 'added' : 'changed', key, fields };
}

const recordOf = (
  { account_id, organization_id, organization_name }: Place,
  what: NonNullable<ImportActivity['details']>,
): ImportActivity => ({
  action: 'membership_set',
  accountId: `${account_id}`,
  details: {
    organization_id: `${organization_id}`,
    organization_name: `${organization_name}`,
    ...what,
  },
});
