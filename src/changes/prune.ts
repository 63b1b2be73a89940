/** Finds imported records that are not in the file, page by page. Ignores manually created records. */
import { Refusal } from '../base/refusal.ts';
import type { Queries } from '../storage/queries.ts';
import type { Change } from './change.ts';
import { IMPORT_TYPES, type ImportKey, type ImportType, PLURALS } from './line.ts';
import type { Plan } from './pages.ts';
import { HOME_ENDED_AT, hasLine, isNamed, keyOfBoth, keyOfId, TABLES } from './stage.ts';
import { existsLater } from './times.ts';

/** In the order of removal: a record is removed before the records on which it depends. */
export const PRUNED_TYPES = [
  'warehouse_rights',
  'membership',
  'warehouse',
  'organization',
  'account',
] as const satisfies readonly ImportType[];

/** An imported record that is not in the file. */
export interface Absent {
  readonly change: Change;
  readonly key: ImportKey;
  /** A name of an organization or warehouse, or the email address of an account. */
  readonly name?: string;
  readonly present?: string | readonly string[];
}

interface Row {
  readonly at: string;
  readonly id: string | null;
  readonly name: string | null;
  readonly account_id: string | null;
  readonly organization_id: string | null;
  readonly warehouse_id: string | null;
  /** The external ids after the import. They are null for manually created records. */
  readonly account: string | null;
  readonly place: string | null;
  readonly present: string | readonly string[] | null;
  readonly is_imported: boolean;
  readonly is_absent: boolean;
  readonly is_newer: boolean;
  readonly is_needed: boolean;
}

const keyAfter = (type: keyof typeof TABLES, id: string, alias: string): string =>
  `LEFT JOIN LATERAL (SELECT coalesce(${keyOfId(id)}, external_id) AS key FROM ${TABLES[type]} x
    WHERE x.id = ${id} OFFSET 0) ${alias} ON true`;
const MEMBER = hasLine('membership', keyOfBoth('a.key', 'o.key'));

/**
 * Selects the rows of the page by the primary key before the join, so that the cost does not depend on the size of the
 * other tables.
 */
const access = (type: 'membership' | 'warehouse_rights'): string => {
  const isRights = type === 'warehouse_rights';
  const table = isRights ? 'warehouse_rights' : 'organization_memberships';
  // The removal of a membership also removes its rights, so these rights are not listed separately.
  const isAbsent = isRights ? `${MEMBER} AND NOT ${hasLine(type, keyOfBoth('a.key', 'w.key'))}` : `NOT ${MEMBER}`;
  const ids = isRights ? ['account', 'warehouse'] : ['account', 'organization'];
  return `SELECT it.id::text AS at, NULL AS id, NULL AS name, it.account_id, it.organization_id,
      ${isRights ? 'it.warehouse_id' : 'NULL AS warehouse_id'}, a.key AS account, ${isRights ? 'w' : 'o'}.key AS place,
      to_jsonb(it.${isRights ? 'rights' : 'role'}) AS present,
      (a.key || o.key ${isRights ? '|| w.key' : ''}) IS NOT NULL AS is_imported, g.is_absent,
      g.is_absent AND ${existsLater(Object.fromEntries(ids.map((part) => [part, `it.${part}_id`])), '$4')} AS is_newer,
      false AS is_needed
    FROM (SELECT * FROM ${table} WHERE id > $2::bigint AND account_id IS NOT NULL ORDER BY id LIMIT $3) it
      ${keyAfter('account', 'it.account_id', 'a')} ${keyAfter('organization', 'it.organization_id', 'o')}
      ${isRights ? keyAfter('warehouse', 'it.warehouse_id', 'w') : ''}
      CROSS JOIN LATERAL (SELECT ${isAbsent} AS is_absent OFFSET 0) g
    ORDER BY it.id`;
};

const IS_BY_HAND = `a.external_id IS NULL AND (a.id IS NULL OR ${keyOfId('a.id')} IS NULL)`;
/** SQL that is true if a manually created record would be removed together with this record. */
const NEEDED = {
  account: 'false',
  warehouse: `EXISTS (SELECT FROM warehouse_rights r LEFT JOIN accounts a ON a.id = r.account_id
    WHERE r.organization_id = it.organization_id AND r.warehouse_id = it.id AND ${IS_BY_HAND})`,
  organization: `(EXISTS (SELECT FROM organization_memberships m LEFT JOIN accounts a ON a.id = m.account_id
      WHERE m.organization_id = it.id AND ${IS_BY_HAND})
    OR EXISTS (SELECT FROM warehouses w WHERE w.organization_id = it.id AND w.external_id IS NULL AND w.ended_at IS NULL))`,
} as const;

const IS_HERE = { account: 'suspended_at IS NULL', organization: 'true', warehouse: `${HOME_ENDED_AT} IS NULL` };

const thing = (type: keyof typeof TABLES): string =>
  `SELECT it.external_id AS at, it.id, ${type === 'account' ? 'it.email' : 'it.name'} AS name, NULL AS account_id,
      NULL AS organization_id, NULL AS warehouse_id, NULL AS account, NULL AS place, NULL AS present,
      true AS is_imported, g.is_absent, g.is_absent AND ${existsLater({ [type]: 'it.id' }, '$4')} AS is_newer,
      g.is_absent AND ${NEEDED[type]} AS is_needed
    FROM (SELECT * FROM ${TABLES[type]} t WHERE external_id > $2 AND ${IS_HERE[type]}
        ORDER BY external_id LIMIT $3) it
      CROSS JOIN LATERAL (SELECT ${keyOfId('it.id')} IS NULL AS is_absent OFFSET 0) g
    ORDER BY it.external_id`;

const SELECT: Readonly<Record<ImportType, string>> = {
  organization: thing('organization'),
  warehouse: thing('warehouse'),
  account: thing('account'),
  membership: access('membership'),
  warehouse_rights: access('warehouse_rights'),
};

export async function prunePage(
  tx: Queries,
  { importId, asOf }: Plan,
  type: ImportType,
  { after, size }: { readonly after: string | undefined; readonly size: number },
) {
  const rows = await tx.query<Row>(SELECT[type], [importId, after ?? (isNamed(type) ? '' : '0'), size, asOf]);
  const imported = rows.filter(({ is_imported }) => is_imported);
  const absent = imported.filter(({ is_absent }) => is_absent);
  const older = absent.filter(({ is_newer }) => !is_newer);
  const { gone = [], kept = [] } = Object.groupBy(older, ({ is_needed }) => (is_needed ? 'kept' : 'gone'));
  return {
    gone: gone.map((row) => absentOf(type, row, asOf)),
    /** Records that are not removed, because the removal would also remove a manually created record. */
    kept: kept.map((row) => absentOf(type, row, asOf)),
    newer: absent.length - older.length,
    present: imported.length,
    next: rows.length < size ? undefined : rows.at(-1)?.at,
  };
}

/** Accounts are suspended and never deleted, so that their log, connections and clients stay available. */
function absentOf(type: ImportType, row: Row, asOf: Date): Absent {
  const { id, name, account, place, present } = row;
  const ids = ['account_id', 'organization_id', 'warehouse_id'] as const;
  const change = {
    type,
    asOf,
    ...Object.fromEntries(ids.flatMap((column) => (row[column] === null ? [] : [[column, row[column]]]))),
    ...(id !== null && { id }),
    end: type === 'account' ? 'suspended' : 'removed',
  } as const;
  const key = isNamed(type)
    ? { type, external_id: row.at }
    : { type, account, [type === 'membership' ? 'organization' : 'warehouse']: place };
  return { change, key: key as ImportKey, ...(name !== null && { name }), ...(present !== null && { present }) };
}

/** The value of `--prune-at-most`: a percentage (`10%`) or a number, for each kind of record. */
export type PruneLimit = string;

/** How many records of a kind would be removed, and how many exist. */
export interface Pruned {
  readonly removed: number;
  readonly present: number;
}

export interface PruneExcess {
  readonly refusal: Refusal;
  /** A limit in percent that would allow the prune. */
  readonly needed: PruneLimit;
}

/** @returns undefined if the limit allows the removal */
export function pruneExcess(pruned: ReadonlyMap<ImportType, Pruned>, limit: PruneLimit): PruneExcess | undefined {
  const beyond = IMPORT_TYPES.flatMap((type) => {
    const { removed = 0, present = 0 } = pruned.get(type) ?? {};
    return removed > allowed(present, limit) ? [{ type, removed, present }] : [];
  });
  if (beyond.length === 0) return undefined;
  const parts = beyond.map(({ type, removed, present }) => `${removed} of ${present} ${PLURALS[type]}`);
  const percents = beyond.map(({ removed, present }) => (100 * removed) / present);
  const needed = `${Math.ceil(Math.max(...percents))}%`;
  const refusal = new Refusal(
    'prune_over_limit',
    `--prune would remove ${parts.join(', ')}; the limit is ${limit} of each kind.`,
    'Check that the file is complete; --dry-run shows the difference. If it is complete, ' +
      `add --prune-at-most ${needed}.`,
  );
  return { refusal, needed };
}

/** Rounds up, so that one of a few records can be removed. Only `100%` allows the removal of all records of a kind. */
function allowed(present: number, limit: PruneLimit): number {
  if (limit === '100%') return present;
  const max = limit.endsWith('%') ? Math.ceil((present * Number(limit.slice(0, -1))) / 100) : Number(limit);
  return Math.min(max, Math.max(0, present - 1));
}
