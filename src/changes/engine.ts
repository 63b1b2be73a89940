/**
 * The only writer of people, organizations, warehouses, memberships and rights. It compares a change with the database,
 * writes and logs the difference, and records the time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Activity } from '../accounts/activity/activity.ts';
import { emailKey } from '../accounts/email.ts';
import { eraseFromLog } from '../accounts/erasure.ts';
import { sha256 } from '../base/random-id.ts';
import { createTurns } from '../storage/account-turns.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { accountProblems, type Holder } from './account-rules.ts';
import type { By, Change, ChangeType, Difference, Fields, FieldValue, Row } from './change.ts';
import { isMove, KINDS, rowAfter } from './kinds.ts';
import type { FileRules } from './pages.ts';
import { isNamed } from './stage.ts';
import { isOutdated, isUnlinkedLater, type KnownTimes, mayAdopt, readTimes, recordTimes } from './times.ts';

export interface Outcome {
  readonly differences: readonly Difference[];
  /** Changes that were not made, because a newer change of the same record is known. */
  readonly outdated: readonly Change[];
  /** If there are problems, nothing was written. */
  readonly problems: readonly ChangeProblem[];
  /** The times that were stored for the records before these changes. */
  readonly times: KnownTimes;
}

export interface ChangeProblem {
  readonly change: Change;
  readonly message: string;
}

export interface Options {
  readonly by?: By;
  /** Absent for a caller that writes its own audit entries. */
  readonly activity?: Pick<Activity, 'recordAll'>;
  /** Returns the changes that may be made, without the removals that exceed the limit. */
  readonly allow?: (tx: Queries, found: readonly Difference[]) => Promise<readonly Difference[]>;
  /** Searches an import's whole file: the database still lacks later lines, and a dry run writes no lines at all. */
  readonly file?: FileRules;
  /** True to compare without writing; then `tx` may be the database itself. */
  readonly isDryRun?: boolean;
}

export type Changes = ReturnType<typeof createChanges>;

/**
 * Create this object once for each process. Its changes run in queues, so that few connections wait for the lock.
 * @param parts.timeoutFactor lengthens the time that a page waits in its queue
 * @param parts.connections the size of the database pool
 */
export function createChanges(parts: {
  readonly database: Database;
  readonly timeoutFactor?: number | undefined;
  readonly connections?: number | undefined;
}) {
  const { database, timeoutFactor = 1, connections = 10 } = parts;
  // While an import writes a batch, up to three pages (fewer with a small pool) may wait for the lock at once.
  const pagesAtOnce = Math.max(1, Math.min(3, Math.floor(connections / 3)));
  const turns = {
    // A page must answer within two seconds, so it must not wait until all lines of a large request are written.
    pages: createTurns(pagesAtOnce, { maxWaiting: 50, maxWaitMs: MAX_WAIT_MS * timeoutFactor }),
    pushes: createTurns(1),
  };

  return {
    /**
     * Runs `work` while no other process changes people, places or access, so that what `work` has read is still true
     * when `work` writes. `now` is the time of the database, because clocks of nodes differ. Do not call `transaction`
     * within `work`: it would wait for itself.
     */
    transaction: <Result>(
      work: (tx: Queries, now: Date) => Promise<Result>,
      turn: keyof typeof turns = 'pages',
    ): Promise<Result> =>
      turns[turn](() =>
        database.transaction(async (tx) => {
          const queries = turn === 'pushes' ? withPlans(tx) : tx;
          const settings = turn === 'pushes' ? `${SETTINGS}, ${BY_INDEX}` : SETTINGS;
          const [row] = await queries.query<{ now: Date }>(
            `SELECT ${tx.now()} AS now FROM (SELECT ${LOCK}, ${settings} OFFSET 0) x`,
          );
          return work(queries, row?.now ?? new Date(Number.NaN));
        }),
      ),
    make,
  };
}

/** A page waits at most this long in its queue, then at most 0.7 s for a connection and at most 0.9 s for the lock. */
const MAX_WAIT_MS = 400;

const LOCK = "pg_advisory_xact_lock(hashtext('gatehouse import'))";
// Without this setting, the triggers treat a deletion as one that an operator made with SQL.
const SETTINGS = "set_config('gatehouse.changes', 'on', true)";
/**
 * SQL that keeps the statements of a transaction from reading whole tables. They would do so if a plan was cached
 * before tables grew from a few rows to millions, or if one organization has a large part of all rows.
 */
export const BY_INDEX = "set_config('enable_seqscan', 'off', true)";

/** Uses prepared statements, because PostgreSQL would otherwise spend half of its time on planning. */
const withPlans = (tx: Queries): Queries => ({
  ...tx,
  query: (text, values) => tx.query(text, values, sha256(text)),
});

/**
 * Runs a transaction. If it fails and a retry may succeed, runs it again after each pause. A retry is safe: if an
 * earlier attempt was committed and only its answer was lost, the retry has nothing left to write.
 */
export async function retried<Result>(
  attempt: () => Promise<Result>,
  pausesMs: readonly number[] = [100, 400, 1_000],
): Promise<Result> {
  for (const pause of pausesMs) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StorageUnavailable || isOvertaken(error))) throw error;
      await delay(pause);
    }
  }
  return attempt();
}

/** A transaction whose statement exceeds its timeout is retried with an eighth of its rows. */
export const RETRIED_SHARE = 8;

export const isTooLong = (error: unknown): boolean =>
  error instanceof StorageUnavailable && error.code === 'statement_too_long';

/** Returns true for a deadlock or conflict with a transaction that does not take the lock. */
export const isOvertaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['40001', '40P01'].includes(String(error.code));

/**
 * Writes the changes to the database, and records their times.
 * @param tx from `transaction`
 * @param now the time of `tx`
 * @param changes must have one type and different records
 */
async function make(tx: Queries, now: Date, changes: readonly Change[], options: Options = {}): Promise<Outcome> {
  const { by = { actor: 'service' }, activity, allow, file, isDryRun = false } = options;
  if (changes.length === 0) return { differences: [], outdated: [], problems: [], times: new Map() };
  const times = await readTimes(tx, changes);
  const isImport = file !== undefined;
  const [outdated, current] = partition(
    // A link that its user removed stays removed, while the rest of the line is applied.
    changes.map((change) => (isUnlinkedLater(times, change) ? { ...change, identity: undefined } : change)),
    (change) => isOutdated(times, change, isImport),
  );
  const compared = await compare(tx, current, { by, now, file });
  const { problems, movedOut } = compared;
  const adoptions = outdated.flatMap((change) => adoptionIn(times, change, isImport));
  // Set `isSystem` to false: otherwise, an outdated line could end a suspension that is newer than the line.
  const adopted = await compare(tx, adoptions, { by: { ...by, isSystem: false }, now, file });
  const found = [...compared.found, ...adopted.found.filter(({ before }) => before?.external_id === null)];
  if (isDryRun) return { differences: found, outdated, problems, times };
  if (problems.length > 0) return { differences: [], outdated, problems, times };
  const differences = allow ? await allow(tx, found) : found;
  await moveOut(tx, movedOut);
  await write(tx, differences, now);
  const entries = differences.flatMap((one) =>
    KINDS[one.change.type].log(one).map((entry) => ({
      ...entry,
      actor: by.actor,
      details: { ...entry.details, ...by.details },
    })),
  );
  await activity?.recordAll(entries, tx);
  const isAdoption = new Set(adoptions);
  const made = new Set(differences.map(({ change }) => change).filter((change) => !isAdoption.has(change)));
  const isHeldBack = new Set(found.map(({ change }) => change).filter((change) => !made.has(change)));
  const known = new Set([...current.filter((change) => !isHeldBack.has(change)), ...made]);
  await recordTimes(tx, [...known], differences, { times, now, isImport, fileId: file?.fileId });
  return { differences, outdated, problems, times };
}

/**
 * An outdated line about a manually added person still sets the person's external id, and changes nothing else.
 * Otherwise, lines that name the person by this external id would be refused.
 */
function adoptionIn(times: KnownTimes, change: Change, isImport: boolean): Change[] {
  const { type, set } = change;
  if (type !== 'account' || !set?.external_id || !mayAdopt(times, change, isImport)) return [];
  return [{ ...change, adds: false, identity: undefined, set: { external_id: set.external_id } }];
}

function partition<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  const { first = [], second = [] } = Object.groupBy(items, (item) => (isFirst(item) ? 'first' : 'second'));
  return [first, second];
}

async function compare(
  tx: Queries,
  changes: readonly Change[],
  { by, now, file }: { readonly by: By; readonly now: Date; readonly file: FileRules | undefined },
) {
  const problems: ChangeProblem[] = [];
  const [first] = changes;
  if (!first) return { found: [], problems, movedOut: [] };
  const { find, context, values, fixed } = KINDS[first.type];
  const columns = [...new Set(['id', ...values, ...fixed])].filter((one) => one !== 'password_hash');
  const lines = changes.map(({ set, identity, ...change }, at) => ({
    at,
    ...change,
    email_key: set?.email === undefined ? null : emailKey(set.email),
    ...identity,
  }));
  const rows = await tx.query<{ at: number; before: Row | null; context: Row | null }>(
    `SELECT l.at, ${context} AS context, CASE WHEN t.id IS NOT NULL THEN
        (SELECT to_jsonb(x) FROM (SELECT ${columns.map((one) => `t.${one}`).join(', ')}) x) END AS before
      FROM jsonb_to_recordset($1::jsonb) AS l (at int, id text, account_id text, client_id text,
        organization_id text, warehouse_id text, email_key text, issuer text, subject text)
      ${find} ORDER BY l.at`,
    [JSON.stringify(lines)],
  );
  const isTaken = rows.flatMap(({ at, context }) => {
    const holder = context?.holder;
    return holder == null || holder === changes[at]?.id ? [] : [String(holder)];
  });
  const holders = file && isTaken.length > 0 ? await file.holders(tx, isTaken) : new Map<string, Holder>();
  const found = rows.flatMap(({ at, before, context }): Difference[] => {
    const change = changes[at] as Change;
    const { identity } = change;
    if (before === null && !(change.set && (change.adds || !isNamed(change.type)))) return [];
    if (change.end === 'removed' || change.end === 'deleted') {
      return [{ change, kind: 'removed', fields: {}, before, after: { ...before, ...context } }];
    }
    const after = { ...rowAfter(change, before, by, now), ...context };
    const messages =
      change.type === 'account'
        ? accountProblems(change, context ?? {}, holders)
        : placeProblems(change, before, after, context ?? {});
    problems.push(...messages.map((message) => ({ change, message })));
    const fields = {
      ...fieldsOf(change.type, before, after),
      ...(identity &&
        context?.linked == null && { identity: [null, `${identity.subject} at ${identity.issuer}`] as const }),
    };
    // Compare `name_key`, too: an operator may have changed a name with SQL, but not its key.
    const isSame = ['suspended_by_import', 'name_key'].every((column) => before?.[column] === after[column]);
    if (before && Object.keys(fields).length === 0 && isSame) return [];
    return [{ change, kind: before ? (change.end ? 'removed' : 'changed') : 'added', fields, before, after }];
  });
  const lost = await lostRights(tx, found, file);
  const movedOut = [...holders].flatMap(([id, holder]) => (holder === 'moves' ? [id] : []));
  return { found: [...found, ...lost], problems, movedOut };
}

const HIDDEN = ['suspended_by_import', 'email_key', 'name_key'];

function fieldsOf(type: ChangeType, before: Row | null, after: Row): Fields {
  const shown = (row: Row | null, column: string): FieldValue =>
    column === 'suspended_at' ? row?.[column] != null : ((row?.[column] ?? null) as FieldValue);
  return Object.fromEntries(
    KINDS[type].values
      .filter(
        (column) =>
          !HIDDEN.includes(column) && JSON.stringify(shown(before, column)) !== JSON.stringify(shown(after, column)),
      )
      .map((column) => [
        column === 'suspended_at' ? 'suspended' : column,
        [shown(before, column), shown(after, column)] as const,
      ]),
  );
}

function placeProblems({ type, formerOrganization }: Change, before: Row | null, after: Row, { home, ending }: Row) {
  // The deletion of the organization or warehouse began after the line was stored with its id.
  if (ending != null) {
    return [`${type}: it is being deleted; \`${ending}\` completes this or says why not, then import the file again`];
  }
  // A move changes who has access to the warehouse, so the line must name both organizations.
  if (type !== 'warehouse' || !before || before.organization_id === after.organization_id) return [];
  if (formerOrganization === before.organization_id) return [];
  return [
    home === null
      ? 'organization: the warehouse belongs to an organization that was not imported; give ' +
        'that organization an external_id first (organizations update), or give the warehouse ' +
        'another external_id'
      : `organization: the warehouse belongs to ${JSON.stringify(home)}; to move it, ` +
        `add "former_organization":${JSON.stringify(home)}`,
  ];
}

/** Returns changes that remove rights in moved warehouses from users and clients outside the new organization. */
async function lostRights(tx: Queries, found: readonly Difference[], file?: FileRules): Promise<Difference[]> {
  const moved = found.filter(isMove);
  if (moved.length === 0) return [];
  const all = await tx.query<Row>(
    `SELECT r.id, r.account_id, r.client_id, r.organization_id, o.name AS organization_name, r.warehouse_id,
        w.name AS warehouse_name, r.rights, l.organization_id AS new_organization_id,
        a.external_id AS account, coalesce(a.email, c.name) AS subject_name
      FROM jsonb_to_recordset($1::jsonb) AS l (id text, organization_id text)
      JOIN warehouses w ON w.id = l.id
      JOIN warehouse_rights r ON r.organization_id = w.organization_id AND r.warehouse_id = w.id
      JOIN organizations o ON o.id = r.organization_id
      LEFT JOIN accounts a ON a.id = r.account_id LEFT JOIN clients c ON c.id = r.client_id
      WHERE NOT EXISTS (SELECT FROM organization_memberships m
          WHERE m.organization_id = l.organization_id AND m.account_id = r.account_id)
        AND NOT EXISTS (SELECT FROM organization_memberships m
          WHERE m.organization_id = l.organization_id AND m.client_id = r.client_id) ORDER BY r.id`,
    [JSON.stringify(moved.map(({ after }) => after))],
  );
  const idsIn = (row: Row) => ({ account: String(row.account_id), organization: String(row.new_organization_id) });
  const members = file && all.length > 0 ? await file.members(tx, all.map(idsIn)) : new Set<string>();
  const rows = all.filter((row) => !members.has(Object.values(idsIn(row)).join(' ')));
  return rows.map((row) => {
    const { account_id, client_id, organization_id, warehouse_id } = row as Readonly<Record<string, string | null>>;
    const ids = { account_id, client_id, organization_id, warehouse_id };
    const move = moved.find(({ after }) => after.id === warehouse_id)?.change;
    const change = {
      ...(Object.fromEntries(Object.entries(ids).filter(([, id]) => id !== null)) as Partial<Change>),
      ...(move?.number !== undefined && { number: move.number }),
      type: 'warehouse_rights',
      asOf: move?.asOf,
      end: 'removed',
    } as const;
    return { change, kind: 'removed', fields: {}, before: row, after: row };
  });
}

/** Replaces addresses of accounts with placeholders. Later in the transaction, the import sets the new addresses. */
async function moveOut(tx: Queries, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const moving = "'moving-' || id || '@gatehouse.invalid'";
  await tx.query(`UPDATE accounts SET email = ${moving}, email_key = ${moving} WHERE id = ANY($1)`, [ids]);
}

/** If there are no differences, run no statement: even an UPDATE of no row makes nodes drop cached access. */
async function write(tx: Queries, differences: readonly Difference[], now: Date): Promise<void> {
  const [ended, kept] = partition(differences, ({ kind, change }) => kind === 'removed' && change.end !== 'suspended');
  for (const [type, some] of Map.groupBy(ended, ({ change }) => change.type)) {
    const { table, id } = KINDS[type];
    const ids = some.map(({ after }) => after.id);
    if (type === 'account') await deleteAccounts(tx, ids.map(String));
    else await tx.query(`DELETE FROM ${table} WHERE id = ANY($1::${id}[])`, [ids]);
  }
  const [first] = kept;
  if (!first) return;
  const { type } = first.change;
  const { table, values, fixed } = KINDS[type];
  const [added, changed] = partition(kept, ({ kind }) => kind === 'added');
  // Do not update an account that only gets a linked identity: the update would wait for other locks on the account.
  const isWritten = changed.filter(({ fields }) => Object.keys(fields).join() !== 'identity');
  if (isWritten.length > 0) {
    // The foreign key (ON UPDATE CASCADE) also moves the rights in a moved warehouse.
    await tx.query(
      `UPDATE ${table} t SET ${values.map((one) => `${one} = l.${one}`).join(', ')}
        FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb) l WHERE t.id = l.id`,
      [JSON.stringify(isWritten.map(({ after }) => after))],
    );
    const moved = isWritten.filter(isMove);
    // The new organization decides for itself which clients it blocks in the warehouse.
    if (moved.length > 0) {
      await tx.query('DELETE FROM barred_in_warehouses WHERE warehouse_id = ANY($1)', [
        moved.map(({ after }) => after.id),
      ]);
    }
  }
  if (added.length > 0) {
    const columns = [...new Set([...fixed, ...values])].join(', ');
    await tx.query(
      `INSERT INTO ${table} (${columns})
        SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`,
      [JSON.stringify(added.map(({ after }) => after))],
    );
  }
  if (type === 'account') await followAccounts(tx, kept, now);
}

async function followAccounts(tx: Queries, made: readonly Difference[], now: Date): Promise<void> {
  const linked = made.filter(({ fields }) => fields.identity);
  if (linked.length > 0) {
    await tx.query(
      `INSERT INTO account_identities (account_id, issuer, subject, created_at)
        SELECT account_id, issuer, subject, $2
        FROM jsonb_to_recordset($1::jsonb) AS line (account_id text, issuer text, subject text)`,
      [JSON.stringify(linked.map(({ change, after }) => ({ account_id: after.id, ...change.identity }))), now],
    );
  }
  const readdressed = made.filter(({ before, fields }) => before && fields.email);
  if (readdressed.length === 0) return;
  // A link that was mailed to the former address must no longer set the password.
  await tx.query('DELETE FROM password_links WHERE account_id = ANY($1)', [readdressed.map(({ after }) => after.id)]);
}

export async function deleteAccounts(tx: Queries, ids: readonly string[]): Promise<void> {
  // Deleting an account also deletes many other rows: one statement for all accounts could exceed its timeout.
  for (const id of ids) await tx.query('DELETE FROM accounts WHERE id = $1', [id]);
  await eraseFromLog(tx, ids);
}
