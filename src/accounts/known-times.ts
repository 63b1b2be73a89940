/** The time of the latest change of each record: an older line or file must not overwrite it. */
import { sha256 } from '../base/random-id.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { emailKey } from './email.ts';

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
}

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
  /** True for a change by a command or a page: see `recordChanges`. */
  readonly isMadeHere?: boolean;
}

/** Records the times. Writes no row that would stay the same. */
export async function recordTimes(
  tx: Queries,
  recorded: readonly Recorded[],
  { now, byImport, isMadeHere = false }: RecordOptions,
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
  // The known time may be ahead, because senders' clocks are: what is done here is newer all the same.
  const asOf = isMadeHere
    ? `greatest(excluded.as_of, interval '1 ms' + greatest(known.as_of,
        (SELECT f.as_of FROM known_files f WHERE f.id = known.file_id)))`
    : 'excluded.as_of';
  await tx.query(
    `INSERT INTO known_times AS known
        (thing, account_id, organization_id, warehouse_id, as_of, by_import, ended_as_of, expires_at)
      SELECT DISTINCT ON (thing) thing, account, coalesce(organization, w.organization_id), warehouse, as_of, $7::boolean,
        CASE WHEN ended THEN as_of END, CASE WHEN ended THEN $8::timestamptz END
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::boolean[])
        AS line (thing, account, organization, warehouse, as_of, ended)
      LEFT JOIN warehouses w ON w.id = warehouse
      ${isMadeHere ? EXISTS : ''}
      ON CONFLICT (thing) DO UPDATE SET as_of = ${asOf}, by_import = excluded.by_import, file_id = NULL,
        organization_id = excluded.organization_id, expires_at = excluded.expires_at,
        ended_as_of = greatest(known.ended_as_of, CASE WHEN excluded.ended_as_of IS NOT NULL THEN ${asOf} END)
      WHERE known.as_of <> excluded.as_of OR known.by_import <> excluded.by_import OR known.file_id IS NOT NULL
        OR (known.expires_at IS NULL) <> (excluded.expires_at IS NULL)`,
    [...[0, 1, 2, 3, 4, 5].map(column), byImport, new Date(now.getTime() + REMEMBERED_MS)],
  );
}

/** An operator may name what does not exist: the change itself then refuses it, or has no effect. */
const EXISTS = `WHERE (account IS NULL OR EXISTS (SELECT FROM accounts a WHERE a.id = account))
  AND (organization IS NULL OR EXISTS (SELECT FROM organizations o WHERE o.id = organization))
  AND (warehouse IS NULL OR w.id IS NOT NULL)`;

/** Each batch of an import and of pushed lines, and each change below, takes this lock first. */
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
 * Commands and pages that wait for the lock in one process use one connection, and pushes another
 * (changes/push.ts): the pool is for all requests.
 */
const TURN = 'known times';

/**
 * Runs a change by a command or a page of what lines change, too: after `lockKnownTimes`. The change
 * must pass `at` to `recordChanges` or `recordDeletion`, or a late line could undo it.
 *
 * @param accountId the account whose user causes the change, if any
 */
export const knownChange = <Result>(
  database: Database,
  accountId: string | undefined,
  work: (tx: Queries, at: Date) => Promise<Result>,
): Promise<Result> =>
  database.inTurn(accountId, () => transactionOf(database, TURN, async (tx) => work(tx, await lockKnownTimes(tx))));

export type Changed = Omit<Thing, 'named'> & Pick<Recorded, 'end'>;

/**
 * Records that a command or a page changed, ended or confirmed the records at this time. Only lines
 * that are later than this, and later than each line that was applied before, overwrite the change.
 */
export const recordChanges = (tx: Queries, at: Date, ...changed: readonly Changed[]): Promise<void> =>
  recordTimes(
    tx,
    changed.map((thing) => ({ ...thing, named: [], asOf: at })),
    { now: at, byImport: false, isMadeHere: true },
  );

/** Like `recordChanges`, for accounts or places that the transaction deletes. Call it before the deletion. */
export async function recordDeletion(
  tx: Queries,
  at: Date,
  type: NamedType,
  rows: readonly Pick<NamedRow, 'id' | 'external_id' | 'email'>[],
): Promise<void> {
  const [{ latest = null } = {}] = await tx.query<{ latest: Date | null }>(
    `SELECT max(greatest(k.as_of, f.as_of)) AS latest
      FROM known_times k LEFT JOIN known_files f ON f.id = k.file_id WHERE thing = ANY($1)`,
    [rows.map(({ id }) => `${type} ${id}`)],
  );
  const asOf = new Date(Math.max(at.getTime(), (latest?.getTime() ?? 0) + 1));
  const things = rows.map((row): Recorded => ({ type, named: namesOf(type, row), asOf, end: 'deleted' }));
  await recordTimes(tx, things, { now: at, byImport: false });
}

/** Returns each name of an account or place by itself: a line may use any of them. */
export const namesOf = (
  type: NamedType,
  { id, external_id, email }: Pick<NamedRow, 'id' | 'external_id' | 'email'>,
): Thing['named'] =>
  [{ external: external_id ?? undefined }, { id }, { email: email ?? undefined }].map((one) => [type, one] as const);
