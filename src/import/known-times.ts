/** The time of the latest change of each record: an older line or file must not overwrite it. */

import { emailKey } from '../accounts/email.ts';
import { sha256 } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';

/** The names by which a line refers to an account or a place. */
export interface Names {
  readonly external?: string | undefined;
  readonly id?: string | undefined;
  readonly email?: string | undefined;
}

export type NamedType = 'account' | 'organization' | 'warehouse';
type KnownType = NamedType | 'membership' | 'warehouse_rights';

export interface NamedRow {
  readonly id: string;
  readonly external_id: string | null;
  readonly email?: string | null;
  /** The name of an account. */
  readonly name?: string;
  /** The organization of a warehouse: its id and its external id. */
  readonly organization_id?: string;
  readonly organization?: string | null;
}

export interface NamedRows {
  byId(id: string | undefined): NamedRow | undefined;
  byExternalId(id: string | undefined): NamedRow | undefined;
  /** Accepts any spelling of the address (see email.ts). */
  byEmail(email: string | undefined): NamedRow | undefined;
}

const SELECT = {
  account: `SELECT id, external_id, email_key AS email, name FROM accounts it
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR it.email_key = ANY($3)`,
  organization: `SELECT id, external_id FROM organizations it
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR $3::text[] IS NULL`,
  warehouse: `SELECT it.id, it.external_id, o.id AS organization_id, o.external_id AS organization
    FROM warehouses it JOIN organizations o ON o.id = it.organization_id
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR $3::text[] IS NULL`,
} as const;

/** Reads the accounts or places that these names refer to, in one query. */
export async function findNamed(queries: Queries, type: NamedType, names: readonly Names[]): Promise<NamedRows> {
  const given = (values: readonly (string | undefined)[]): string[] => [
    ...new Set(values.filter((value) => value !== undefined)),
  ];
  const ids = given(names.map(({ id }) => id));
  const externalIds = given(names.map(({ external }) => external));
  const emails = given(names.map(({ email }) => email && emailKey(email)));
  const rows =
    ids.length + externalIds.length + emails.length === 0
      ? []
      : await queries.query<NamedRow>(SELECT[type], [ids, externalIds, emails]);
  const map = (key: 'id' | 'external_id' | 'email') => new Map(rows.map((row) => [row[key], row]));
  const [byId, byExternalId, byEmail] = [map('id'), map('external_id'), map('email')];
  return {
    byId: (id) => (id ? byId.get(id) : undefined),
    byExternalId: (id) => (id ? byExternalId.get(id) : undefined),
    byEmail: (email) => (email ? byEmail.get(emailKey(email)) : undefined),
  };
}

/** An account, place, membership or right, as the table `known_times` identifies it. */
export interface Thing {
  readonly type: KnownType;
  /** The ids of its account and places; an id is absent if the account or place does not exist. */
  readonly account?: string | undefined;
  readonly organization?: string | undefined;
  readonly warehouse?: string | undefined;
  /** How the line names its accounts and places, some of which may have been deleted. */
  readonly named: readonly (readonly [NamedType, Names])[];
  /** True for rights in a warehouse that the file has in another organization than the database. */
  readonly isElsewhere?: boolean;
}

interface KnownTime {
  readonly asOf: Date;
  readonly byImport: boolean;
  readonly endedAsOf: Date | null;
}

export type KnownTimes = ReadonlyMap<string, KnownTime>;

/** Returns the key of a thing in `known_times`; undefined if its account or place is missing. */
function keyOf({ type, account, organization, warehouse }: Thing): string | undefined {
  const ids = {
    organization: [organization],
    warehouse: [warehouse],
    account: [account],
    membership: [account, organization],
    warehouse_rights: [account, warehouse],
  }[type];
  return ids.every((id) => id !== undefined) ? [type, ...ids].join(' ') : undefined;
}

/** Keys of a deleted account or place, one for each of its names. Hashes addresses: personal data. */
const deletedKeys = ([type, { external, id, email }]: Thing['named'][number]): string[] => [
  ...(external ? [`deleted ${type} external ${external}`] : []),
  ...(id ? [`deleted ${type} id ${id}`] : []),
  ...(email && !external && !id ? [`deleted ${type} email ${sha256(emailKey(email))}`] : []),
];

/** Keys of the accounts, places and memberships whose end also ended this thing. */
function dependencies({ type, account, organization, named }: Thing): string[] {
  const membership = keyOf({ type: 'membership', account, organization, named });
  return [
    ...named.flatMap(deletedKeys),
    ...(type === 'warehouse_rights' && membership !== undefined ? [membership] : []),
  ];
}

const placeOf = ({ warehouse, isElsewhere }: Thing): string | undefined =>
  isElsewhere ? `warehouse ${warehouse}` : undefined;

export async function readTimes(queries: Queries, things: readonly Thing[]): Promise<KnownTimes> {
  if (things.length === 0) return new Map();
  const keys = things.flatMap((thing) => [
    ...[keyOf(thing), placeOf(thing)].filter((key) => key !== undefined),
    ...dependencies(thing),
  ]);
  const rows = await queries.query<KnownTime & { readonly thing: string }>(
    `SELECT thing, as_of AS "asOf", by_import AS "byImport", ended_as_of AS "endedAsOf"
      FROM known_times WHERE thing = ANY($1)`,
    [[...new Set(keys)]],
  );
  return new Map(rows.map((row) => [row.thing, row]));
}

export const isIdentified = (thing: Thing): boolean => keyOf(thing) !== undefined;

/** Returns true if any change newer than `asOf` was pushed; if none, an import compares no times. */
export async function isAnythingNewer(queries: Queries, asOf: Date): Promise<boolean> {
  const rows = await queries.query('SELECT FROM known_times WHERE as_of > $1 AND NOT by_import LIMIT 1', [asOf]);
  return rows.length > 0;
}

/** Returns true if an import has already recorded the time `asOf` for the thing. */
export function isOf(times: KnownTimes, thing: Thing, asOf: Date): boolean {
  const known = times.get(`${keyOf(thing)}`);
  return known?.byImport === true && known.asOf.getTime() === asOf.getTime();
}

/** Returns true if the account or a place of the thing is known to have been deleted. */
export const isDeleted = (times: KnownTimes, { named }: Thing): boolean =>
  named.flatMap(deletedKeys).some((key) => times.has(key));

/**
 * Returns true if the thing, or what it depends on, was changed or ended after `asOf`.
 *
 * @param isImport true for an import: it is compared with pushed changes, not with other imports
 */
export function isOutdated(
  times: KnownTimes,
  thing: Thing,
  asOf: Date,
  { isImport }: { readonly isImport: boolean },
): boolean {
  const isNewer = (key: string, which: 'asOf' | 'endedAsOf'): boolean => {
    const known = times.get(key);
    const at = known?.[which] ?? undefined;
    return at !== undefined && at > asOf && !(isImport && known?.byImport);
  };
  return (
    [keyOf(thing), placeOf(thing)].some((key) => key !== undefined && isNewer(key, 'asOf')) ||
    dependencies(thing).some((key) => isNewer(key, 'endedAsOf'))
  );
}

/** The time to record for a thing after a line or a file was applied. */
export interface Recorded extends Thing {
  readonly asOf: Date;
  /** `ended`: and everything that depends on it. `deleted`: an account or place, kept by its names. */
  readonly end?: 'ended' | 'deleted' | undefined;
}

/** How long the time of a removal is kept. */
const REMEMBERED_MS = 30 * 86_400_000;

interface RecordOptions {
  readonly now: Date;
  readonly byImport: boolean;
}

/** Records the times. Writes no row that would stay the same. */
export async function recordTimes(
  tx: Queries,
  recorded: readonly Recorded[],
  { now, byImport }: RecordOptions,
): Promise<void> {
  const rows = recorded.flatMap(({ asOf, end, ...thing }) => {
    const own = keyOf(thing);
    const keys = end === 'deleted' ? thing.named.flatMap(deletedKeys) : [own ?? []].flat();
    const { account = null, organization = null, warehouse = null } = thing;
    // Rows with the id of a deleted account or place would be deleted with it (foreign keys).
    const ids = end === 'deleted' ? [null, null, null] : [account, organization, warehouse];
    return keys.map((key) => [key, ...ids, asOf, end !== undefined] as const);
  });
  if (rows.length === 0) return;
  const column = (index: number): unknown[] => rows.map((row) => row[index]);
  await tx.query(
    `INSERT INTO known_times AS known
        (thing, account_id, organization_id, warehouse_id, as_of, by_import, ended_as_of, expires_at)
      SELECT DISTINCT ON (thing) thing, account, coalesce(organization, w.organization_id), warehouse, as_of, $7::boolean,
        CASE WHEN ended THEN as_of END, CASE WHEN ended THEN $8::timestamptz END
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::boolean[])
        AS line (thing, account, organization, warehouse, as_of, ended)
      LEFT JOIN warehouses w ON w.id = warehouse
      ON CONFLICT (thing) DO UPDATE SET as_of = excluded.as_of, by_import = excluded.by_import,
        organization_id = excluded.organization_id, expires_at = excluded.expires_at,
        ended_as_of = greatest(known.ended_as_of, excluded.ended_as_of)
      WHERE known.as_of <> excluded.as_of OR known.by_import <> excluded.by_import
        OR (known.expires_at IS NULL) <> (excluded.expires_at IS NULL)`,
    [...[0, 1, 2, 3, 4, 5].map(column), byImport, new Date(now.getTime() + REMEMBERED_MS)],
  );
}

/** Each batch of an import and of pushed lines takes this lock first. */
const LOCK = "pg_advisory_xact_lock(hashtext('gatehouse import'))";

/**
 * Waits for other writers of accounts, places and access, and excludes them until the transaction ends:
 * none may write between another's comparison of times and its write. Call it before any row is
 * locked, to avoid deadlocks.
 *
 * @returns the time after the wait, by the database's clock: those of nodes differ, and a change at
 *   one of them must be newer than what was applied at another before
 */
export async function lockKnownTimes(tx: Queries): Promise<Date> {
  await tx.query(`SELECT ${LOCK}`);
  const [row] = await tx.query<{ at: Date }>(`SELECT ${tx.now()} AS at`);
  if (row === undefined) throw new Error('SELECT answered no row');
  return row.at;
}

/**
 * SQL condition: a change pushed after `asOf` says that the record, or one inside it, exists. An
 * import of an older file without the record must then not remove the record.
 *
 * @param ids SQL expressions for the ids of the record's account and places
 * @param asOf the SQL parameter with the time of the file
 */
export const existsLater = (
  ids: { readonly account?: string; readonly organization?: string; readonly warehouse?: string },
  asOf: string,
): string =>
  `EXISTS (SELECT FROM known_times t WHERE t.as_of > ${asOf} AND NOT t.by_import
    AND t.expires_at IS NULL
    ${Object.entries(ids)
      .map(([part, id]) => `AND t.${part}_id = ${id}`)
      .join(' ')})`;
