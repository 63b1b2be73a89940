/** Memberships and rights that the file no longer has, and the pages in which all that goes is found. */

import type { Right, Role } from '../accounts/access/reach.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportActivity, ImportChange, ImportFacts, ImportStep } from './change.ts';
import type { ImportKey } from './line.ts';

interface MembershipRow {
  readonly id: string;
  readonly account_id: string;
  /** Null where it was made by hand. */
  readonly account: string | null;
  readonly organization_id: string;
  readonly organization: string | null;
  readonly organization_name: string;
}

interface RightsRow extends MembershipRow {
  readonly warehouse_id: string;
  readonly warehouse: string | null;
  readonly warehouse_name: string;
  readonly rights: readonly Right[];
}

/** A page by the primary key first, whoever it is about: what it takes does not depend on the rest. */
const pageFrom = (table: 'organization_memberships' | 'warehouse_rights'): string => `FROM (
    SELECT * FROM ${table} WHERE id > $1 AND account_id IS NOT NULL ORDER BY id LIMIT $2
  ) AS it
  JOIN accounts a ON a.id = it.account_id
  JOIN organizations o ON o.id = it.organization_id`;
const COLUMNS = `it.id, a.id AS account_id, a.external_id AS account, o.id AS organization_id,
  o.external_id AS organization, o.name AS organization_name`;

/** The same with the external ids that will be there when the import has adopted what it does. */
const imported = <Row extends MembershipRow>(rows: readonly Row[], { adopted }: ImportFacts) =>
  rows.flatMap((row) => {
    const account = adopted.account.externalIds.get(row.account_id) ?? row.account;
    const organization =
      adopted.organization.externalIds.get(row.organization_id) ?? row.organization;
    return account === null || organization === null ? [] : [{ ...row, account, organization }];
  });

export async function pruneRights(
  queries: Queries,
  { after = '0', size }: PageRequest,
  facts: ImportFacts,
): Promise<PrunePage> {
  const rows = await queries.query<RightsRow>(
    `SELECT ${COLUMNS}, w.id AS warehouse_id, w.external_id AS warehouse,
        w.name AS warehouse_name, it.rights
      ${pageFrom('warehouse_rights')} JOIN warehouses w ON w.id = it.warehouse_id
      ORDER BY it.id`,
    [after, size],
  );
  const present = imported(rows, facts).flatMap((row) => {
    const warehouse = facts.adopted.warehouse.externalIds.get(row.warehouse_id) ?? row.warehouse;
    return warehouse === null ? [] : [{ ...row, warehouse }];
  });
  const keyOf = ({ account, warehouse }: (typeof present)[number]) =>
    ({ type: 'warehouse_rights', account, warehouse }) as const;
  // With a membership its rights go by themselves.
  const gone = present.filter(
    (row) => !facts.index.has(keyOf(row)) && facts.index.has(membershipOf(row)),
  );
  const step: ImportStep = {
    changes: gone.map((row) => removal(keyOf(row), { rights: [row.rights, null] })),
    async write(tx) {
      await remove(tx, 'warehouse_rights', gone);
      return gone.map((row) =>
        recordOf(row, { warehouse_id: row.warehouse_id, warehouse_name: row.warehouse_name }),
      );
    },
  };
  return pageOf(rows, { size, cursor: 'id', present: present.length }, step);
}

export async function pruneMemberships(
  queries: Queries,
  { after = '0', size }: PageRequest,
  facts: ImportFacts,
): Promise<PrunePage> {
  const rows = await queries.query<MembershipRow & { role: Role }>(
    `SELECT ${COLUMNS}, it.role ${pageFrom('organization_memberships')} ORDER BY it.id`,
    [after, size],
  );
  const present = imported(rows, facts);
  const gone = present.filter((row) => !facts.index.has(membershipOf(row)));
  const step: ImportStep = {
    changes: gone.map((row) => removal(membershipOf(row), { role: [row.role, null] })),
    async write(tx) {
      await remove(tx, 'organization_memberships', gone);
      return gone.map((row) => recordOf(row));
    },
  };
  return pageOf(rows, { size, cursor: 'id', present: present.length }, step);
}

const membershipOf = ({ account, organization }: { account: string; organization: string }) =>
  ({ type: 'membership', account, organization }) as const;

const recordOf = (
  { account_id: accountId, organization_id, organization_name }: MembershipRow,
  where: Readonly<Record<string, string>> = {},
): ImportActivity => ({
  action: 'membership_removed',
  accountId,
  details: { organization_id, organization_name, ...where },
});

export interface PrunePage {
  readonly step: ImportStep;
  /** How many imported things were looked at: those that could be removed. */
  readonly present: number;
  /** Where the next page begins; undefined after the last one. */
  readonly next: string | undefined;
}

export interface PageRequest {
  /** The `next` of the page before; undefined for the first one. */
  readonly after: string | undefined;
  readonly size: number;
}

export type PrunePages = (
  queries: Queries,
  page: PageRequest,
  facts: ImportFacts,
) => Promise<PrunePage>;

export const removal = (
  key: ImportKey,
  fields: NonNullable<ImportChange['fields']>,
): ImportChange => ({
  change: 'removed',
  key,
  fields,
});

export async function remove(
  tx: Queries,
  table: 'warehouse_rights' | 'organization_memberships' | 'warehouses' | 'organizations',
  rows: readonly { readonly id: string }[],
): Promise<void> {
  // A deletion, even of nothing, would make every node forget what is reached.
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${table} WHERE id = ANY($1)`, [rows.map(({ id }) => id)]);
}

/**
 * @param cursor the column that the pages are in the order of.
 * @param present how many of the rows were imported; all of them unless said.
 */
export function pageOf<Column extends string>(
  rows: readonly Readonly<Record<Column, string>>[],
  {
    size,
    cursor,
    present = rows.length,
  }: { readonly size: number; readonly cursor: Column; readonly present?: number },
  step: ImportStep,
): PrunePage {
  const last = rows.length < size ? undefined : rows.at(-1);
  return { step, present, next: last?.[cursor] };
}
