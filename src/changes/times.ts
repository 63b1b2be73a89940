/** Stores the time of the latest change of each record. A change of an earlier time must not overwrite the record. */
import { emailKey } from '../accounts/email.ts';
import { sha256 } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import type { Change, Difference, NamedType, Names, Row } from './change.ts';
import { isMove } from './kinds.ts';
import { isNamed } from './stage.ts';

export interface KnownTime {
  readonly asOf: Date;
  /** True if an import recorded the time `asOf`. Another import overwrites this time even if its file is older. */
  readonly byImport: boolean;
  /** The id of the record's set in the table known_files; null if the record is in no set. */
  readonly fileId: string | null;
  readonly endedAsOf: Date | null;
}

export type KnownTimes = ReadonlyMap<string, KnownTime>;

const PARTS = {
  organization: ['id'],
  warehouse: ['id'],
  account: ['id'],
  membership: ['account_id', 'organization_id'],
  warehouse_rights: ['account_id', 'warehouse_id'],
} as const;

/** Returns undefined if an id is missing. Machine clients need no key: imports and pushes never contain them. */
function keyOf(change: Change): string | undefined {
  const ids = PARTS[change.type].map((part) => change[part]);
  return ids.every((id) => id !== undefined) ? [change.type, ...ids].join(' ') : undefined;
}

/** Returns a key for each identifier of a deleted record. Hashes email addresses, because they are personal data. */
const deletedKeys = ([type, { external, id, email }]: readonly [NamedType, Names]): string[] => [
  ...(external ? [`deleted ${type} external ${external}`] : []),
  ...(id ? [`deleted ${type} id ${id}`] : []),
  ...(email ? [`deleted ${type} email ${sha256(emailKey(email))}`] : []),
];

/** Returns the key for a removed provider link. A line from before the removal must not restore the link. */
const unlinkedKey = (id: string, issuer: string): string => `deleted identity ${id} ${issuer}`;

/**
 * Returns the key of a stored time: when an account last got or lost the address. An import line with an earlier time
 * may refer to another account.
 */
const addressKey = (email: string): string => `account email ${sha256(emailKey(email))}`;

const linkKeys = ({ id, identity }: Change): string[] => (id && identity ? [unlinkedKey(id, identity.issuer)] : []);

/** Returns keys of records the change depends on. Rights, for example, are outdated if the membership ended later. */
function dependencies({ type, account_id, organization_id, named = [], set, adds }: Change): string[] {
  const membership =
    type === 'warehouse_rights' ? keyOf({ type: 'membership', account_id, organization_id }) : undefined;
  const isAdopted = type === 'account' && set?.external_id && !adds;
  const addresses = isAdopted ? named.flatMap(([, { email }]) => email ?? []) : [];
  return [
    ...named.flatMap(deletedKeys),
    ...addresses.map(addressKey),
    ...(membership === undefined ? [] : [membership]),
  ];
}

/**
 * Returns the key of the warehouse if its organization differs between the file and the database, perhaps because a
 * later change moved the warehouse.
 */
const moved = ({ warehouse_id, isElsewhere }: Change): string[] => (isElsewhere ? [`warehouse ${warehouse_id}`] : []);

/**
 * @param withDeleted true to read all deletions of the named records. If false, deletions are read only if any record
 * ended after the earliest change.
 */
export async function readTimes(
  tx: Queries,
  changes: readonly Change[],
  { withDeleted = false }: { readonly withDeleted?: boolean } = {},
): Promise<KnownTimes> {
  const own = changes.flatMap((change) => [keyOf(change) ?? [], moved(change)].flat());
  const earliest = changes.flatMap(({ asOf }) => asOf?.getTime() ?? []).reduce((a, b) => Math.min(a, b), Infinity);
  const select = `SELECT thing, greatest(k.as_of, f.as_of) AS "asOf", by_import AS "byImport", file_id AS "fileId",
      ended_as_of AS "endedAsOf" FROM known_times k LEFT JOIN known_files f ON f.id = k.file_id`;
  const rows = await tx.query<KnownTime & { readonly thing: string }>(
    `${select} WHERE thing = ANY($1) UNION ALL
      ${select} WHERE thing = ANY($2) AND ($4 OR (SELECT true FROM known_times WHERE ended_as_of > $3 LIMIT 1))`,
    [
      [...new Set(own)],
      [...new Set(changes.flatMap((change) => [...dependencies(change), ...linkKeys(change)]))],
      Number.isFinite(earliest) ? new Date(earliest) : null,
      withDeleted,
    ],
  );
  return new Map(rows.map((row) => [row.thing, row]));
}

/** Returns the set of records (known-files.ts) that contains the record of the change. */
export const fileIdOf = (times: KnownTimes, change: Change): string | null | undefined =>
  times.get(`${keyOf(change)}`)?.fileId;

export const isDeleted = (times: KnownTimes, { named = [] }: Change): boolean =>
  named.flatMap(deletedKeys).some((key) => times.has(key));

/**
 * Returns true if the database has a later change of the same record, or the later end of a record on which it depends.
 *
 * @param isImport true for an import: the times of two imports are not compared, because the import that runs last wins
 */
export function isOutdated(times: KnownTimes, change: Change, isImport = false): boolean {
  const isNewer = newerThan(times, change, isImport);
  return (
    [`${keyOf(change)}`, ...moved(change)].some((key) => isNewer(key, 'asOf')) ||
    dependencies(change).some((key) => isNewer(key, 'endedAsOf'))
  );
}

const newerThan =
  (times: KnownTimes, { asOf }: Change, isImport: boolean) =>
  (key: string, which: 'asOf' | 'endedAsOf'): boolean => {
    const known = times.get(key);
    const at = known?.[which];
    return asOf !== undefined && at != null && at > asOf && !(isImport && known?.byImport);
  };

export const isUnlinkedLater = (times: KnownTimes, change: Change): boolean =>
  linkKeys(change).some((key) => newerThan(times, change, false)(key, 'endedAsOf'));

/**
 * Returns true if the person found for an outdated line is certainly the person that the line means: since the time of
 * the line, no person with the line's names was deleted, and no person got or lost the line's address.
 */
export const mayAdopt = (times: KnownTimes, change: Change, isImport: boolean): boolean =>
  !isOutdated(times, { ...change, id: undefined }, isImport);

/**
 * SQL condition: a change later than `asOf` shows that the record exists, or that a record inside it exists. If so, an
 * import of a file with the time `asOf` must not remove the record.
 *
 * @param ids SQL expressions for the ids of the record's account, organization and warehouse
 * @param asOf the SQL parameter with the time of the file
 */
export const existsLater = (
  ids: { readonly account?: string; readonly organization?: string; readonly warehouse?: string },
  asOf: string,
): string =>
  `EXISTS (SELECT FROM known_times t WHERE t.as_of > ${asOf} AND NOT t.by_import AND t.expires_at IS NULL
    ${Object.entries(ids)
      .map(([part, id]) => `AND t.${part}_id = ${id}`)
      .join(' ')})`;

/** The time of a removal is stored for this long. */
const REMEMBERED_MS = 30 * 86_400_000;

function movedAddresses({ type, set }: Change, before: Row | null | undefined): string[] {
  if (type !== 'account' || !before || set?.email === undefined) return [];
  const keys = new Set([String(before.email), set.email].map(addressKey));
  return keys.size > 1 ? [...keys] : [];
}

/** SQL that is true if the account, organization or warehouse exists. A scalar subquery always uses the primary key. */
const stillExists = (part: string): string =>
  `(${part}_id IS NULL OR (SELECT true FROM ${part}s x WHERE x.id = ${part}_id))`;

/**
 * Records the time of each change, even of one without effect. Does not rewrite equal rows. Only an import's time can
 * become earlier, and only by an import. If a late line moves a warehouse, the rights that end keep their time.
 * @param times as recorded before the change. A change without `asOf` gets a later time than the recorded one.
 * @param isImport true to give unchanged records the time of the file `fileId`
 */
export async function recordTimes(
  tx: Queries,
  changes: readonly Change[],
  differences: readonly Difference[],
  {
    times,
    now,
    isImport = false,
    fileId = null,
  }: {
    readonly times: KnownTimes;
    readonly now: Date;
    readonly isImport?: boolean;
    readonly fileId?: string | null | undefined;
  },
): Promise<void> {
  const before = new Map(differences.map((one) => [one.change, one.before]));
  const rows = changes.flatMap((change) => {
    const { type, end, id, account_id, organization_id, warehouse_id } = change;
    const thing = keyOf(change);
    if (thing === undefined) return [];
    if (fileId !== null && times.get(thing)?.fileId === fileId && !before.has(change)) return [];
    // The recorded time may be in the future, because the clock of its sender was ahead.
    const known = times.get(thing)?.asOf.getTime() ?? 0;
    const as_of = change.asOf ?? new Date(Math.max(now.getTime(), known + 1));
    if (isNamed(type) && (end === 'deleted' || end === 'removed')) {
      const { external_id: external, email } = (before.get(change) ?? {}) as Record<string, string>;
      // Leave the id columns empty: otherwise, foreign keys would delete this row together with the deleted record.
      return deletedKeys([type, { external, id, email }]).map((key) => ({ thing: key, as_of, ended: true }));
    }
    const ids = { account_id, organization_id, warehouse_id, ...(isNamed(type) && { [`${type}_id`]: id }) };
    return [
      { thing, ...ids, as_of, ended: end === 'removed', file_id: end === undefined ? fileId : null },
      ...movedAddresses(change, before.get(change)).map((key) => ({ thing: key, as_of, ended: true })),
    ];
  });
  if (rows.length === 0) return;
  await tx.query(
    `INSERT INTO known_times AS known
        (thing, account_id, organization_id, warehouse_id, as_of, by_import, file_id, ended_as_of, expires_at)
      SELECT DISTINCT ON (thing) thing, account_id, organization_id, warehouse_id, as_of, $3::boolean, file_id,
        CASE WHEN ended THEN as_of END, CASE WHEN ended THEN $2::timestamptz END
      FROM jsonb_to_recordset($1::jsonb) AS line (thing text, account_id text, organization_id text,
        warehouse_id text, as_of timestamptz, ended boolean, file_id text)
      WHERE ${['account', 'organization', 'warehouse'].map(stillExists).join(' AND ')}
      ON CONFLICT (thing) DO UPDATE SET as_of = CASE WHEN known.by_import AND excluded.by_import THEN excluded.as_of
          ELSE greatest(excluded.as_of, known.as_of, (SELECT f.as_of FROM known_files f WHERE f.id = known.file_id)) END,
        by_import = excluded.by_import, file_id = excluded.file_id,
        organization_id = excluded.organization_id, expires_at = excluded.expires_at,
        ended_as_of = greatest(known.ended_as_of, excluded.ended_as_of)
      WHERE known.as_of <> excluded.as_of OR known.by_import <> excluded.by_import
        OR known.file_id IS DISTINCT FROM excluded.file_id
        OR (known.expires_at IS NULL) <> (excluded.expires_at IS NULL)`,
    [JSON.stringify(rows), new Date(now.getTime() + REMEMBERED_MS), isImport],
  );
  const elsewhere = differences.filter(isMove);
  if (elsewhere.length > 0) {
    // Rights in a moved warehouse depend on the new organization.
    await tx.query(
      `UPDATE known_times k SET organization_id = line.organization_id
        FROM jsonb_to_recordset($1::jsonb) AS line (id text, organization_id text)
        WHERE k.warehouse_id = line.id AND k.organization_id <> line.organization_id`,
      [JSON.stringify(elsewhere.map(({ after }) => after))],
    );
  }
  const left = differences.filter(({ change, kind }) => change.type === 'membership' && kind === 'removed');
  if (left.length === 0) return;
  // The database deletes the rights with the membership. Without OFFSET 0, PostgreSQL would read all rights.
  await tx.query(
    `UPDATE known_times SET expires_at = $2 WHERE ctid = ANY(ARRAY(SELECT r.ctid
      FROM jsonb_to_recordset($1::jsonb) AS line (account_id text, organization_id text)
        CROSS JOIN LATERAL (SELECT ctid FROM known_times t WHERE t.account_id = line.account_id
          AND t.organization_id = line.organization_id AND t.warehouse_id IS NOT NULL AND t.expires_at IS NULL OFFSET 0) r))`,
    [JSON.stringify(left.map(({ change }) => change)), new Date(now.getTime() + REMEMBERED_MS)],
  );
}

/** Records the removal of a person's provider links, with a time after all lines that were applied to the person. */
export async function recordUnlinked(
  tx: Queries,
  now: Date,
  accountId: string,
  issuers: readonly string[],
): Promise<void> {
  await tx.query(
    `INSERT INTO known_times (thing, account_id, as_of, by_import, ended_as_of, expires_at)
      SELECT line.thing, $2, made.at, false, made.at, $4 FROM unnest($1::text[]) AS line (thing),
        (SELECT greatest($3::timestamptz, max(greatest(k.as_of, f.as_of)) + interval '1 ms') AS at
          FROM known_times k LEFT JOIN known_files f ON f.id = k.file_id WHERE k.thing = 'account ' || $2) made
      ON CONFLICT (thing) DO UPDATE
        SET as_of = excluded.as_of, ended_as_of = excluded.ended_as_of, expires_at = excluded.expires_at`,
    [issuers.map((issuer) => unlinkedKey(accountId, issuer)), accountId, now, new Date(now.getTime() + REMEMBERED_MS)],
  );
}

/** Records that accounts, organizations or warehouses are deleted now. Call this function before the deletion. */
export async function recordDeletions(
  tx: Queries,
  now: Date,
  type: NamedType,
  rows: readonly (Row & { readonly id: string })[],
): Promise<void> {
  const made = rows.map((before) => {
    const change: Change = { type, id: before.id, end: 'removed' };
    return { change, kind: 'removed' as const, fields: {}, before, after: before };
  });
  const changes = made.map(({ change }) => change);
  await recordTimes(tx, changes, made, { times: await readTimes(tx, changes), now });
}
