/** Removes imported things that the file no longer contains; nothing that was created by hand. */
import type { Queries } from '../storage/queries.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import type { ImportKey, ImportType, PlaceType } from './line.ts';

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

interface AccessRow {
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

interface ImportedAccess {
  readonly row: AccessRow;
  readonly key: ImportKey;
  /** The membership on which the rights depend, or the membership itself. */
  readonly membership: ImportKey;
}

const ACCESS = {
  membership: { gives: 'role', read: '', join: '' },
  warehouse_rights: {
    gives: 'rights',
    read: ', w.id AS warehouse_id, w.external_id AS warehouse, w.name AS warehouse_name',
    join: 'JOIN warehouses w ON w.id = it.warehouse_id',
  },
} as const;

const pruneAccess =
  (type: keyof typeof ACCESS): Prune =>
  async (queries, { after = '0', size }, { index, adopted }) => {
    const { gives, read, join } = ACCESS[type];
    // Take a page by primary key before joining: its cost is then independent of the other tables.
    const rows = await queries.query<AccessRow>(
      `SELECT it.id, a.id AS account_id, a.external_id AS account, o.id AS organization_id,
          o.external_id AS organization, o.name AS organization_name, it.${gives} AS present${read}
        FROM (
          SELECT * FROM ${TABLES[type]} WHERE id > $1 AND account_id IS NOT NULL ORDER BY id LIMIT $2
        ) AS it
        JOIN accounts a ON a.id = it.account_id
        JOIN organizations o ON o.id = it.organization_id ${join}
        ORDER BY it.id`,
      [after, size],
    );
    // Use the external ids that exist once the import has adopted its accounts and places.
    const imported = rows.flatMap((row): ImportedAccess[] => {
      const account = adopted.account.externalIds.get(row.account_id) ?? row.account;
      const organization =
        adopted.organization.externalIds.get(row.organization_id) ?? row.organization;
      if (account === null || organization === null) return [];
      const membership = { type: 'membership', account, organization } as const;
      if (row.warehouse_id === undefined) return [{ row, key: membership, membership }];
      const warehouse = adopted.warehouse.externalIds.get(row.warehouse_id) ?? row.warehouse;
      return warehouse
        ? [{ row, key: { type: 'warehouse_rights', account, warehouse }, membership }]
        : [];
    });
    // Removing a membership also removes its rights: do not list them separately.
    const gone = imported.filter(
      ({ key, membership }) =>
        !index.has(key) && (key.type === 'membership' || index.has(membership)),
    );
    const step: ImportStep = {
      changes: gone.map(({ key, row }) => ({
        change: 'removed',
        key,
        fields: { [gives]: [row.present, null] },
      })),
      async write(tx) {
        await remove(
          tx,
          type,
          gone.map(({ row }) => row.id),
        );
        return gone.map(
          ({ row: { account_id: accountId, warehouse_id, warehouse_name, ...row } }) => ({
            action: 'membership_removed',
            accountId,
            details: {
              organization_id: row.organization_id,
              organization_name: row.organization_name,
              ...(warehouse_id !== undefined && {
                warehouse_id,
                warehouse_name: `${warehouse_name}`,
              }),
            },
          }),
        );
      },
    };
    return { step, present: imported.length, next: nextPage(rows, size)?.id };
  };

async function remove(
  tx: Queries,
  type: keyof typeof TABLES,
  ids: readonly string[],
): Promise<void> {
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
  async (queries, { after = '', size }, { index, adopted, now }) => {
    const rows = await queries.query<ThingRow>(
      type === 'account'
        ? `SELECT id, external_id, email AS name FROM accounts
            WHERE external_id > $1 AND suspended_at IS NULL ORDER BY external_id LIMIT $2`
        : `SELECT id, external_id, name FROM ${TABLES[type]}
            WHERE external_id > $1 ORDER BY external_id LIMIT $2`,
      [after, size],
    );
    const absent = rows.filter(
      ({ id, external_id }) =>
        !index.has({ type, external_id }) && !adopted[type].externalIds.has(id),
    );
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
      async write(tx) {
        if (type === 'account') {
          await tx.query(
            `UPDATE accounts SET suspended_at = $2, suspended_by_import = true
              WHERE id = ANY($1) AND suspended_at IS NULL`,
            [goneIds, now],
          );
          return gone.map(({ id, external_id }) => ({
            action: 'account_suspended',
            accountId: id,
            details: { external_id },
          }));
        }
        await remove(tx, type, goneIds);
        return gone.map(({ id, name, external_id }) => ({
          action: `${type}_removed`,
          details: { [`${type}_id`]: id, [`${type}_name`]: name, external_id },
        }));
      },
    };
    return { step, present: rows.length, next: nextPage(rows, size)?.external_id };
  };
