/** Compares the accounts of an import with the database, and writes the differences. */
import { emailKey, newEmailProblem } from '../accounts/email.ts';
import type { Identity } from '../accounts/identities/identities.ts';
import { randomId } from '../base/random-id.ts';
import type { Queries } from '../storage/queries.ts';
import { linkAccounts, linkFault, recordsOfAdded, recordsOfChanged } from './account-records.ts';
import {
  adopt,
  bothIdsExist,
  columnsOf,
  type ImportChange,
  type ImportFacts,
  type ImportStep,
  type SetLine,
} from './change.ts';
import { existsLater } from './known-times.ts';

type AccountLine = SetLine<'account'>;

interface AccountRow {
  readonly id: string;
  readonly external_id: string | null;
  readonly email: string;
  readonly name: string;
  readonly is_suspended: boolean;
  readonly suspended_by_import: boolean;
}

/** A line with the accounts that now have its external id, its former id, or its address. */
interface Match {
  readonly position: string;
  readonly account: AccountRow | null;
  readonly former: AccountRow | null;
  readonly holder: AccountRow | null;
  /** True if a newer change of the holder was pushed: no line of the file changes the holder. */
  readonly is_holder_newer: boolean;
  /** The account that is linked with the identity of the line. */
  readonly linked: string | null;
  /** The subject at the identity's issuer to which the first of these accounts is linked. */
  readonly subject: string | null;
}

/** The state that a line wants an existing account to have. */
interface Target {
  readonly id: string;
  readonly external_id: string | null;
  readonly email: string;
  readonly name: string;
  readonly suspension: Suspension;
  /** The identity to link with the account. */
  readonly identity: Identity | undefined;
  readonly changed: readonly string[];
}

type Suspension = 'begin' | 'end' | 'keep';

/**
 * Matches accounts by external id, then by former external id, then by address; an account created
 * by hand that matches by address is adopted. Addresses may move between accounts of the file.
 */
export async function compareAccounts(
  queries: Queries,
  lines: readonly AccountLine[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const matches = await matchesOf(queries, lines, facts);
  const added: (AccountLine & { id: string })[] = [];
  const targets: Target[] = [];
  const movedOut: string[] = [];
  const changes: ImportChange[] = [];

  for (const { position, account, former, holder, linked, subject, ...match } of matches) {
    const line = lines[Number(position) - 1];
    if (!line) continue;
    const { external_id, email } = line;
    if (account && former) facts.problems.add(line.number, bothIdsExist(`${former.external_id}`));
    const known = account ?? former;
    const found = known ?? (holder?.external_id === null ? holder : undefined);
    if (holder && holder.id !== found?.id) {
      // The line of the current holder has another address, so the import itself ends the conflict.
      if (isInFile(facts, holder) && !match.is_holder_newer) movedOut.push(holder.id);
      else facts.problems.add(line.number, takenEmail(holder, match.is_holder_newer));
    }
    const key = { type: 'account', external_id: external_id ?? `${found?.id}` } as const;
    const isRefused = newEmailProblem(email);
    if (isRefused) facts.problems.add(line.number, refusedEmail(email, isRefused));
    const fault = linkFault(line.identity, found, { linked, subject });
    if (fault !== undefined) facts.problems.add(line.number, fault);
    if (!found) {
      added.push({ ...line, id: randomId('acc_', 16) });
      const fields = line.suspended ? { suspended: [false, true] as const } : undefined;
      const { number } = line;
      changes.push({ change: 'added', line: number, key, name: email, ...(fields && { fields }) });
      continue;
    }
    if (!account) adopt(facts, key, found.id);
    const { target, fields } = targetOf(found, line, linked !== null);
    if (target.changed.length === 0) continue;
    targets.push(target);
    changes.push({ change: 'changed', line: line.number, key, name: email, fields });
  }

  return {
    changes,
    async write(tx) {
      await moveOut(tx, movedOut);
      await update(tx, targets, facts.now);
      await insert(tx, added, facts.now);
      await linkAccounts(tx, [...targets, ...added], facts.now);
      return [...added.flatMap(recordsOfAdded), ...targets.flatMap(recordsOfChanged)];
    },
  };
}

function isInFile({ index }: ImportFacts, { external_id }: AccountRow): boolean {
  if (external_id === null) return false;
  const key = { type: 'account', external_id } as const;
  return index.has(key) || index.isFormer(key);
}

function matchesOf(queries: Queries, lines: readonly AccountLine[], { asOf }: ImportFacts): Promise<Match[]> {
  const columns = (table: string): string =>
    `CASE WHEN ${table}.id IS NULL THEN NULL ELSE jsonb_build_object(
      'id', ${table}.id, 'external_id', ${table}.external_id, 'email', ${table}.email,
      'name', ${table}.name, 'is_suspended', ${table}.suspended_at IS NOT NULL,
      'suspended_by_import', ${table}.suspended_by_import) END`;
  return queries.query<Match>(
    `SELECT line.position, ${columns('a')} AS account, ${columns('f')} AS former,
        ${columns('h')} AS holder,
        ${existsLater({ account: 'h.id' }, '$7')} AS is_holder_newer, linked.account_id AS linked, own.subject
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
        WITH ORDINALITY
        AS line (external_id, email_key, former_external_id, issuer, subject, id, position)
      LEFT JOIN accounts a ON a.id = coalesce(line.id,
        (SELECT id FROM accounts WHERE external_id = line.external_id))
      LEFT JOIN accounts f ON f.external_id = line.former_external_id
      LEFT JOIN accounts h ON h.email_key = line.email_key
      LEFT JOIN account_identities linked
        ON linked.issuer = line.issuer AND linked.subject = line.subject
      LEFT JOIN account_identities own
        ON own.account_id = coalesce(a.id, f.id, h.id) AND own.issuer = line.issuer
      ORDER BY line.position`,
    [
      lines.map(({ external_id }) => external_id),
      lines.map(({ email }) => emailKey(email)),
      lines.map(({ former_external_id = null }) => former_external_id),
      lines.map(({ identity }) => identity?.issuer ?? null),
      lines.map(({ identity }) => identity?.subject ?? null),
      lines.map(({ id = null }) => id),
      asOf,
    ],
  );
}

function targetOf(row: AccountRow, line: AccountLine, isLinked: boolean) {
  const { external_id, email, name, suspended } = line;
  const identity = isLinked ? undefined : line.identity;
  const suspension = suspensionOf(row, suspended);
  const fields = Object.fromEntries(
    (
      [
        ['external_id', row.external_id, external_id],
        ['email', row.email, email],
        ['name', row.name, name],
        ['suspended', row.is_suspended, suspendedAfter(row, suspension)],
        ['identity', null, identity ? `${identity.subject} at ${identity.issuer}` : null],
      ] as const
    )
      .filter(([, before, after]) => before !== after)
      .map(([field, before, after]) => [field, [before, after] as const]),
  );
  const changed = Object.keys(fields);
  return {
    target: { id: row.id, external_id, email, name, suspension, identity, changed },
    fields,
  };
}

/** A line without `suspended` ends a suspension by an earlier import, but keeps a manual one. */
function suspensionOf(row: AccountRow, suspended: boolean | undefined): Suspension {
  if (suspended) return row.is_suspended ? 'keep' : 'begin';
  if (!row.is_suspended) return 'keep';
  return suspended === false || row.suspended_by_import ? 'end' : 'keep';
}

const suspendedAfter = (row: AccountRow, suspension: Suspension): boolean =>
  suspension === 'keep' ? row.is_suspended : suspension === 'begin';

const takenEmail = ({ id, external_id }: AccountRow, isNewer: boolean): string =>
  external_id === null
    ? `email: the account ${id}, which was not imported, has this address; change one of the ` + 'two'
    : `email: the account with the external_id ${JSON.stringify(external_id)}, which ` +
      `${isNewer ? 'was changed after the file was written' : 'is not in the file'}, has this ` +
      'address; use that external_id, or add a line that gives that ' +
      'account another address';

const refusedEmail = (email: string, { other }: { readonly other?: string }): string =>
  other === undefined
    ? `email: ${JSON.stringify(email)} is not an email address; write one like "ada@example.com"`
    : `email: ${JSON.stringify(email)} is not in its normalized form; write ` + `${JSON.stringify(other)}`;

/** Clears addresses within the transaction; each account's own line then sets the new one. */
async function moveOut(tx: Queries, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const moving = "'moving-' || id || '@gatehouse.invalid'";
  await tx.query(`UPDATE accounts SET email = ${moving}, email_key = ${moving} WHERE id = ANY($1)`, [ids]);
}

async function update(tx: Queries, targets: readonly Target[], now: Date): Promise<void> {
  if (targets.length === 0) return;
  await tx.query(
    `UPDATE accounts a SET external_id = line.external_id, email = line.email, email_key = line.email_key,
        name = line.name,
        suspended_at = CASE line.suspension
          WHEN 'begin' THEN $6::timestamptz WHEN 'end' THEN NULL ELSE a.suspended_at END,
        suspended_by_import = CASE line.suspension
          WHEN 'begin' THEN true WHEN 'end' THEN false ELSE a.suspended_by_import END
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $7::text[])
        AS line (id, external_id, email, name, suspension, email_key)
      WHERE a.id = line.id`,
    [
      ...columnsOf(targets, 'id', 'external_id', 'email', 'name', 'suspension'),
      now,
      targets.map(({ email }) => emailKey(email)),
    ],
  );
  const readdressed = targets.filter(({ changed }) => changed.includes('email'));
  if (readdressed.length === 0) return;
  const ids = readdressed.map(({ id }) => id);
  // A link that was mailed to the former address must not set the password any more.
  await tx.query('DELETE FROM password_links WHERE account_id = ANY($1)', [ids]);
}

async function insert(tx: Queries, added: readonly (AccountLine & { id: string })[], now: Date): Promise<void> {
  if (added.length === 0) return;
  await tx.query(
    `INSERT INTO accounts
        (id, external_id, email, email_key, name, created_at, suspended_at, suspended_by_import)
      SELECT id, external_id, email, email_key, name, $6::timestamptz,
        CASE WHEN is_suspended THEN $6::timestamptz END, is_suspended
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $7::text[])
        AS line (id, external_id, email, name, is_suspended, email_key)`,
    [
      ...columnsOf(added, 'id', 'external_id', 'email', 'name'),
      added.map(({ suspended = false }) => suspended),
      now,
      added.map(({ email }) => emailKey(email)),
    ],
  );
}
