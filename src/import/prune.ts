/** What an import removes: things it once brought that the file no longer has. Nothing made by hand. */
import type { Queries } from '../storage/queries.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import type { ImportType } from './line.ts';
import {
  type PageRequest,
  type PrunePage,
  type PrunePages,
  pageOf,
  pruneMemberships,
  pruneRights,
  removal,
  remove,
} from './prune-access.ts';

/** In the order in which they are removed: what stands on another thing goes before it. */
export const PRUNED_TYPES = [
  'warehouse_rights',
  'membership',
  'warehouse',
  'organization',
  'account',
] as const satisfies readonly ImportType[];

export const prunePages: Readonly<Record<ImportType, PrunePages>> = {
  warehouse_rights: pruneRights,
  membership: pruneMemberships,
  warehouse: (queries, page, facts) => prunePlaces('warehouse', queries, page, facts),
  organization: (queries, page, facts) => prunePlaces('organization', queries, page, facts),
  account: pruneAccounts,
};

interface PlaceRow {
  readonly id: string;
  readonly external_id: string;
  readonly name: string;
}

/** What was made by hand would go with the place: then the place stays. */
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

async function prunePlaces(
  type: 'organization' | 'warehouse',
  queries: Queries,
  { after = '', size }: PageRequest,
  { index, adopted }: ImportFacts,
): Promise<PrunePage> {
  const table = type === 'warehouse' ? 'warehouses' : 'organizations';
  const rows = await queries.query<PlaceRow>(
    `SELECT id, external_id, name FROM ${table}
      WHERE external_id > $1 ORDER BY external_id LIMIT $2`,
    [after, size],
  );
  const absent = rows.filter(
    ({ id, external_id }) =>
      !index.has({ type, external_id }) && !adopted[type].externalIds.has(id),
  );
  const needed =
    absent.length === 0
      ? []
      : await queries.query<{ id: string }>(NEEDED[type], [
          absent.map(({ id }) => id),
          [...adopted.account.ids.values()],
        ]);
  const neededIds = new Set(needed.map(({ id }) => id));
  const gone = absent.filter(({ id }) => !neededIds.has(id));
  const step: ImportStep = {
    changes: absent.map(({ id, external_id, name }) => ({
      change: neededIds.has(id) ? 'kept' : 'removed',
      key: { type, external_id },
      name,
    })),
    async write(tx) {
      await remove(tx, table, gone);
      return gone.map(({ id, name, external_id }) => ({
        action: `${type}_removed`,
        details: { [`${type}_id`]: id, [`${type}_name`]: name, external_id },
      }));
    },
  };
  return pageOf(rows, { size, cursor: 'external_id' }, step);
}

/** An account is suspended, never deleted: its log, connections and clients are still asked about. */
async function pruneAccounts(
  queries: Queries,
  { after = '', size }: PageRequest,
  { index, now, adopted }: ImportFacts,
): Promise<PrunePage> {
  const rows = await queries.query<{ id: string; external_id: string; email: string }>(
    `SELECT id, external_id, email FROM accounts
      WHERE external_id > $1 AND suspended_at IS NULL ORDER BY external_id LIMIT $2`,
    [after, size],
  );
  const type = 'account';
  const gone = rows.filter(
    ({ id, external_id }) =>
      !index.has({ type, external_id }) && !adopted.account.externalIds.has(id),
  );
  const step: ImportStep = {
    changes: gone.map(({ external_id, email }) => ({
      ...removal({ type, external_id }, { suspended: [false, true] }),
      name: email,
    })),
    async write(tx) {
      await tx.query(
        `UPDATE accounts SET suspended_at = $2, suspended_by_import = true
          WHERE id = ANY($1) AND suspended_at IS NULL`,
        [gone.map(({ id }) => id), now],
      );
      return gone.map(({ id, external_id }) => ({
        action: 'account_suspended',
        accountId: id,
        details: { external_id },
      }));
    },
  };
  return pageOf(rows, { size, cursor: 'external_id' }, step);
}
