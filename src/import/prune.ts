/** Removes imported things that the file no longer contains; nothing that was created by hand. */

import type { ImportKey, ImportType, PlaceType } from '../changes/line.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportActivity, ImportFacts, ImportStep } from './change.ts';
import { existsLater, type NamedRow, recordTimes, type Thing } from './known-times.ts';

/** In order of removal: dependents before what they depend on. */
export const PRUNED_TYPES = [
  'warehouse_rights',
  'membership',
  'warehouse',
  'organization',
  'account',
] as const satisfies readonly ImportType[];

export interface PrunePage {
  readonly step: ImportStep;
  /** Number of compared things; all of them were imported, and so could be removed. */
  readonly present: number;
  /** Start of the next page; undefined after the last one. */
  readonly next: string | undefined;
}

export interface PageRequest {
  /** The `next` of the previous page; undefined for the first page. */
  readonly after: string | undefined;
  readonly size: number;
}

type Prune = (queries: Queries, page: PageRequest, facts: ImportFacts) => Promise<PrunePage>;

/** Compares one page of imported things, ordered by id, with the file. */
export const prunePage = (type: ImportType): Prune =>
  type === 'membership' || type === 'warehouse_rights' ? pruneAccess(type) : pruneThings(type);

const TABLES = {
  organization: 'organizations',
  warehouse: 'warehouses',
  membership: 'organization_memberships',
  warehouse_rights: 'warehouse_rights',
} as const;

export interface AccessRow {
  readonly id: string;
  readonly account_id: string;
  /** Null if the account was created by hand. */
  readonly account: string | null;
  readonly organization_id: string;
  readonly organization: string | null;
  readonly organization_name: string;
  readonly warehouse_id?: string;
  readonly warehouse?: string | null;
  readonly warehouse_name?: string;
  /** The current role or rights. */
  readonly present: string | readonly string[];
}

interface PrunedAccessRow extends AccessRow {
  /** True if a change pushed after the time of the file says that the record exists. */
  readonly is_newer: boolean;
}

interface ImportedAccess {
  readonly row: PrunedAccessRow;
  readonly key: ImportKey;
  /** The membership on which the rights depend, or the membership itself. */
  readonly membership: ImportKey;
}

const ACCESS = {
  membership: {
    gives: 'role',
    read: '',
    join: '',
    ids: { account: 'a.id', organization: 'o.id' },
  },
  warehouse_rights: {
    gives: 'rights',
    read: ', w.id AS warehouse_id, w.external_id AS warehouse, w.name AS warehouse_name',
    join: 'JOIN warehouses w ON w.id = it.warehouse_id',
    ids: { account: 'a.id', warehouse: 'w.id' },
  },
} as const;

const pruneAccess =
  (type: keyof typeof ACCESS): Prune =>
  async (queries, { after = '0', size }, { index, adopted, now, asOf }) => {
    const { gives, read, join, ids } = ACCESS[type];
    // Take a page by primary key before joining: its cost is then independent of the other tables.
    const rows = await queries.query<PrunedAccessRow>(
      `SELECT it.id, ${existsLater(ids, '$3')} AS is_newer, a.id AS account_id, a.external_id AS account, o.id AS organization_id,
          o.external_id AS organization, o.name AS organization_name, it.${gives} AS present${read}
        FROM (
          SELECT * FROM ${TABLES[type]} WHERE id > $1 AND account_id IS NOT NULL ORDER BY id LIMIT $2
        ) AS it
        JOIN accounts a ON a.id = it.account_id
        JOIN organizations o ON o.id = it.organization_id ${join}
        ORDER BY it.id`,
      [after, size, asOf],
    );
    // Use the external ids that exist once the import has adopted its accounts and places.
    const imported = rows.flatMap((row): ImportedAccess[] => {
      const account = adopted.account.externalIds.get(row.account_id) ?? row.account;
      const organization = adopted.organization.externalIds.get(row.organization_id) ?? row.organization;
      if (account === null || organization === null) return [];
      const membership = { type: 'membership', account, organization } as const;
      if (row.warehouse_id === undefined) return [{ row, key: membership, membership }];
      const warehouse = adopted.warehouse.externalIds.get(row.warehouse_id) ?? row.warehouse;
      return warehouse ? [{ row, key: { type: 'warehouse_rights', account, warehouse }, membership }] : [];
    });
    // Removing a membership also removes its rights: do not list them separately.
    const absent = imported.filter(
      ({ key, membership }) => !index.has(key) && (key.type === 'membership' || index.has(membership)),
    );
    const gone = absent.filter(({ row }) => !row.is_newer);
    const step: ImportStep = {
      changes: gone.map(({ key, row }) => ({
        change: 'removed',
        key,
        fields: { [gives]: [row.present, null] },
      })),
      newer: absent.length - gone.length,
      write: (tx) =>
        removeAccess(
          tx,
          type,
          gone.map(({ row }) => row),
        ),
      recordTimes: (tx) =>
        recordTimes(
          tx,
          gone.map(({ row }) => ({ ...thingOf(type, row), asOf, end: 'ended' })),
          { now, byImport: true },
        ),
    };
    return { step, present: imported.length, next: nextPage(rows, size)?.id };
  };

const thingOf = (type: keyof typeof ACCESS, row: AccessRow): Thing => ({
  type,
  account: row.account_id,
  organization: row.organization_id,
  warehouse: row.warehouse_id,
  named: [],
});

/** Removes memberships or rights, and returns the activity to record. */
export async function removeAccess(
  tx: Queries,
  type: keyof typeof ACCESS,
  rows: readonly AccessRow[],
): Promise<ImportActivity[]> {
  await remove(
    tx,
    type,
    rows.map(({ id }) => id),
  );
  return rows.map(({ account_id: accountId, warehouse_id, warehouse_name, ...row }) => ({
    action: 'membership_removed',
    accountId,
    details: {
      organization_id: row.organization_id,
      organization_name: row.organization_name,
      ...(warehouse_id !== undefined && { warehouse_id, warehouse_name: `${warehouse_name}` }),
    },
  }));
}

async function remove(tx: Queries, type: keyof typeof TABLES, ids: readonly string[]): Promise<void> {
  // Even a DELETE of no row would make every node clear its cached access: send none.
  if (ids.length === 0) return;
  await tx.query(`DELETE FROM ${TABLES[type]} WHERE id = ANY($1)`, [ids]);
}

const nextPage = <Row>(rows: readonly Row[], size: number): Row | undefined =>
  rows.length < size ? undefined : rows.at(-1);

interface ThingRow {
  readonly id: string;
  readonly external_id: string;
  /** The name of the thing; the email address of an account. */
  readonly name: string;
  /** See `PrunedAccessRow`. */
  readonly is_newer: boolean;
}

/** Queries for places that must stay: something created by hand would be removed with them. */
const NEEDED = {
  warehouse: `SELECT w.id FROM warehouses w
    JOIN warehouse_rights r
      ON r.organization_id = w.organization_id AND r.warehouse_id = w.id
    LEFT JOIN accounts a ON a.id = r.account_id
    WHERE w.id = ANY($1) AND a.external_id IS NULL AND NOT coalesce(a.id = ANY($2), false)`,
  organization: `SELECT m.organization_id AS id FROM organization_memberships m
      LEFT JOIN accounts a ON a.id = m.account_id
      WHERE m.organization_id = ANY($1)
        AND a.external_id IS NULL AND NOT coalesce(a.id = ANY($2), false)
    UNION SELECT organization_id FROM warehouses
      WHERE organization_id = ANY($1) AND external_id IS NULL`,
} as const;

/** Suspends accounts, never deletes them: their log, connections and clients stay available. */
const pruneThings =
  (type: PlaceType | 'account'): Prune =>
  async (queries, { after = '', size }, { index, adopted, now, asOf }) => {
    const isNewer = existsLater({ [type]: 'it.id' }, '$3');
    const rows = await queries.query<ThingRow>(
      type === 'account'
        ? `SELECT id, external_id, email AS name, ${isNewer} AS is_newer FROM accounts it
            WHERE external_id > $1 AND suspended_at IS NULL ORDER BY external_id LIMIT $2`
        : `SELECT id, external_id, name, ${isNewer} AS is_newer FROM ${TABLES[type]} it
            WHERE external_id > $1 ORDER BY external_id LIMIT $2`,
      [after, size, asOf],
    );
    const missing = rows.filter(
      ({ id, external_id }) => !index.has({ type, external_id }) && !adopted[type].externalIds.has(id),
    );
    const absent = missing.filter(({ is_newer }) => !is_newer);
    const needed =
      type === 'account' || absent.length === 0
        ? []
        : await queries.query<{ id: string }>(NEEDED[type], [
            absent.map(({ id }) => id),
            [...adopted.account.ids.values()],
          ]);
    const neededIds = new Set(needed.map(({ id }) => id));
    const gone = absent.filter(({ id }) => !neededIds.has(id));
    const goneIds = gone.map(({ id }) => id);
    const step: ImportStep = {
      changes: absent.map(({ id, external_id, name }) => ({
        change: neededIds.has(id) ? 'kept' : 'removed',
        key: { type, external_id },
        name,
        ...(type === 'account' && { fields: { suspended: [false, true] } }),
      })),
      newer: missing.length - absent.length,
      recordTimes(tx) {
        const ended = gone.map(({ id, external_id: external }) => ({
          type,
          [type]: id,
          asOf,
          named: [[type, { external }]] as const,
          ...(type !== 'account' && { end: 'deleted' as const }),
        }));
        return recordTimes(tx, ended, { now, byImport: true });
      },
      async write(tx) {
        if (type === 'account') return suspendAccounts(tx, gone, now);
        await remove(tx, type, goneIds);
        return gone.map(({ id, name, external_id }) => ({
          action: `${type}_removed`,
          details: { [`${type}_id`]: id, [`${type}_name`]: name, external_id },
        }));
      },
    };
    return { step, present: rows.length, next: nextPage(rows, size)?.external_id };
  };

/** Suspends accounts until an import or a pushed line contains them; returns the activity. */
export async function suspendAccounts(
  tx: Queries,
  accounts: readonly Pick<NamedRow, 'id' | 'external_id'>[],
  now: Date,
): Promise<ImportActivity[]> {
  await tx.query(
    `UPDATE accounts SET suspended_at = $2, suspended_by_import = true
      WHERE id = ANY($1) AND suspended_at IS NULL`,
    [accounts.map(({ id }) => id), now],
  );
  return accounts.map(({ id: accountId, external_id }) => ({
    action: 'account_suspended',
    accountId,
    details: { ...(external_id !== null && { external_id }) },
  }));
}
