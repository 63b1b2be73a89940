/** When each thing was true, so that an older line or file does not overwrite something newer. */
import { emailKey } from '../accounts/email.ts';
import { sha256 } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportType } from './line.ts';

/** The names by which a line refers to an account or a place. */
export interface Names {
  readonly external?: string | undefined;
  readonly id?: string | undefined;
  readonly email?: string | undefined;
}

export type NamedType = 'account' | 'organization' | 'warehouse';

export interface NamedRow {
  readonly id: string;
  readonly external_id: string | null;
  readonly email?: string | null;
  /** The organization of a warehouse: its id and its external id. */
  readonly organization_id?: string;
  readonly organization?: string | null;
}

export interface NamedRows {
  byId(id: string | undefined): NamedRow | undefined;
  byExternalId(id: string | undefined): NamedRow | undefined;
  /** In any spelling (see email.ts). */
  byEmail(email: string | undefined): NamedRow | undefined;
}

const SELECT = {
  account: `SELECT id, external_id, email_key AS email FROM accounts it
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR it.email_key = ANY($3)`,
  organization: `SELECT id, external_id FROM organizations it
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR $3::text[] IS NULL`,
  warehouse: `SELECT it.id, it.external_id, o.id AS organization_id, o.external_id AS organization
    FROM warehouses it JOIN organizations o ON o.id = it.organization_id
    WHERE it.id = ANY($1) OR it.external_id = ANY($2) OR $3::text[] IS NULL`,
} as const;

/** Reads what these names refer to, in one query. */
export async function findNamed(
  queries: Queries,
  type: NamedType,
  names: readonly Names[],
): Promise<NamedRows> {
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

/** A thing as `known_times` names it. */
export interface Thing {
  readonly type: ImportType;
  /** Ids of the account and the places; absent while the thing does not exist. */
  readonly account?: string | undefined;
  readonly organization?: string | undefined;
  readonly warehouse?: string | undefined;
  /** The names of the accounts and places of the line, which may have been deleted. */
  readonly named: readonly (readonly [NamedType, Names])[];
  /** True for rights in a warehouse that is not in the organization in which the file has it. */
  readonly isElsewhere?: boolean;
}

interface KnownTime {
  readonly asOf: Date;
  readonly byImport: boolean;
  readonly endedAsOf: Date | null;
}

export type KnownTimes = ReadonlyMap<string, KnownTime>;

/** Returns the key of the thing; undefined if one of its parts does not exist. */
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

/** Keys of what a deleted account or place was called. An address is hashed: it is personal data. */
const deletedKeys = ([type, { external, id, email }]: Thing['named'][number]): string[] => [
  ...(external ? [`deleted ${type} external ${external}`] : []),
  ...(id ? [`deleted ${type} id ${id}`] : []),
  ...(email && !external && !id ? [`deleted ${type} email ${sha256(emailKey(email))}`] : []),
];

/** Keys of the things on which this one depends, and with which it ended. */
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

/** Returns true if every part of the thing exists. */
export const isIdentified = (thing: Thing): boolean => keyOf(thing) !== undefined;

/** Returns true if anything was pushed that is newer: otherwise an import need not look. */
export async function isAnythingNewer(queries: Queries, asOf: Date): Promise<boolean> {
  const rows = await queries.query(
    'SELECT FROM known_times WHERE as_of > $1 AND NOT by_import LIMIT 1',
    [asOf],
  );
  return rows.length > 0;
}

/** Returns true if an import has recorded this time of the thing already. */
export function isOf(times: KnownTimes, thing: Thing, asOf: Date): boolean {
  const known = times.get(`${keyOf(thing)}`);
  return known?.byImport === true && known.asOf.getTime() === asOf.getTime();
}

/** Returns true if it is remembered that a part of the thing was deleted. */
export const isDeleted = (times: KnownTimes, { named }: Thing): boolean =>
  named.flatMap(deletedKeys).some((key) => times.has(key));

/**
 * Returns true if something newer than `asOf` is known about the thing, or ended what it depends on.
 *
 * @param isImport files may be imported in any order, so imports are not compared with each other
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

/** What is recorded about a thing after a line or a file was applied. */
export interface Recorded extends Thing {
  readonly asOf: Date;
  /** `ended`: also what depends on it. `deleted`: an account or a place, under its names. */
  readonly end?: 'ended' | 'deleted' | undefined;
}

/** How long it is remembered that something was removed. */
const REMEMBERED_MS = 30 * 86_400_000;

/** Writes nothing about things of which this is known already. */
export async function recordTimes(
  tx: Queries,
  recorded: readonly Recorded[],
  { now, byImport }: { readonly now: Date; readonly byImport: boolean },
): Promise<void> {
  const rows = recorded.flatMap(({ asOf, end, ...thing }) => {
    const own = keyOf(thing);
    const keys = end === 'deleted' ? thing.named.flatMap(deletedKeys) : [own ?? []].flat();
    const { account = null, organization = null, warehouse = null } = thing;
    // The rows of a deleted account or place would be deleted with it.
    const ids = end === 'deleted' ? [null, null, null] : [account, organization, warehouse];
    return keys.map((key) => [key, ...ids, asOf, end !== undefined] as const);
  });
  if (rows.length === 0) return;
  const column = (index: number): unknown[] => rows.map((row) => row[index]);
  await tx.query(
    `INSERT INTO known_times AS known
        (thing, account_id, organization_id, warehouse_id, as_of, by_import, ended_as_of, expires_at)
      SELECT DISTINCT ON (thing) thing, account, organization, warehouse, as_of, $7::boolean,
        CASE WHEN ended THEN as_of END, CASE WHEN ended THEN $8::timestamptz END
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::boolean[])
        AS line (thing, account, organization, warehouse, as_of, ended)
      ON CONFLICT (thing) DO UPDATE SET as_of = excluded.as_of, by_import = excluded.by_import,
        organization_id = excluded.organization_id, expires_at = excluded.expires_at,
        ended_as_of = greatest(known.ended_as_of, excluded.ended_as_of)
      WHERE known.as_of <> excluded.as_of OR known.by_import <> excluded.by_import
        OR (known.expires_at IS NULL) <> (excluded.expires_at IS NULL)`,
    [...[0, 1, 2, 3, 4, 5].map(column), byImport, new Date(now.getTime() + REMEMBERED_MS)],
  );
}

/**
 * SQL condition: something that was pushed after `asOf` says that this exists, or that something in
 * it does. So an older file that does not contain it does not remove it.
 *
 * @param ids expressions for the ids of its account and places
 * @param asOf the parameter with the time of the file
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
