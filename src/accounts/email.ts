/** Which email addresses accounts have, and when two are the same. */
import { inOwnScript, isMailbox, MAX_ADDRESS_BYTES } from '../base/mailbox.ts';
import { sha256 } from '../base/random-id.ts';
import type { Database } from '../storage/queries.ts';

/**
 * The former rule: one @, a dot in the domain, nothing invisible. Accounts of that time may have an
 * address that `newEmailProblem` refuses, so sign-ins and look-ups still go by this one.
 */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/**
 * Returns the spelling that is kept, shown and mailed to, or undefined if no account can have this
 * address. New addresses must pass `newEmailProblem` as well.
 */
export function normalizeEmail(entered: string): string | undefined {
  const email = entered.normalize('NFC').trim();
  return Buffer.byteLength(email) <= MAX_ADDRESS_BYTES && EMAIL.test(email) ? email : undefined;
}

/**
 * One text for all spellings of an address: what `accounts.email_key` keeps, and what look-ups,
 * limits and turns go by. Whatever finds an account therefore counts as that account.
 *
 * What is no address has a key as well, which no account has and PostgreSQL can be asked for.
 */
export function emailKey(entered: string): string {
  const email = normalizeEmail(entered);
  return email === undefined ? `no address ${sha256(entered)}` : folded(email);
}

/**
 * Returns why an address must not be given to an account, or undefined for a good one. An account that
 * has it already keeps it.
 *
 * @param email as `normalizeEmail` returned it.
 * @returns `other`: the address to use instead, if there is one.
 */
export function newEmailProblem(email: string): { readonly other?: string } | undefined {
  const other = otherEmailMeant(email) ?? inOwnScript(email);
  if (other !== undefined) return { other };
  return isMailbox(email) ? undefined : {};
}

/**
 * True if an address of a provider is that of an account. Only ASCII letter case may differ. Do not
 * normalize before: NFC makes a K of the Kelvin sign, but the two may be mailboxes of two people.
 */
export function isSameMailbox(kept: string, claimed: string): boolean {
  return inAsciiLowerCase(kept) === inAsciiLowerCase(claimed);
}

const inAsciiLowerCase = (text: string): string =>
  text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * The address that this one is taken for, where more than letter case tells them apart: mail to the
 * two may reach two people, so no account is made under such a spelling.
 */
export function otherEmailMeant(email: string): string | undefined {
  const key = folded(email);
  return key === lowered(email) ? undefined : key;
}

/**
 * Compatibility forms (UAX #15, NFKC) without letter case and ignorable characters, a little coarser
 * than NFKC_Casefold (UAX #44), which UTS #46 has for domains: the dotted capital I and the dotless i
 * are an i here, for databases, languages and keyboards do not agree on their other case. Stable for
 * all assigned characters, and there are no others in an address: keys outlive newer Unicodes.
 */
function folded(email: string): string {
  const compatible = email.normalize('NFKD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  // Lower first: the capital sharp s is its own upper case.
  const caseless = compatible.toLowerCase().toUpperCase().normalize('NFKD');
  return lowered(caseless).replaceAll('i\u0307', 'i').normalize('NFKC');
}

/** The sigma at the end of a word is the same letter. */
const lowered = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');

/** Somebody who cannot sign in by an address, for the account `holder` has the same one. */
interface EmailConflict {
  readonly accountId: string;
  readonly holder: string;
}

interface Row {
  readonly id: string;
  readonly email: string;
  /** As text: a Date has no microseconds, and would find its own row again. */
  readonly created_at: string;
}

const BATCH = 1_000;

/**
 * To be called once the schema is there, before anybody is looked for. Of accounts whose addresses
 * are one by their keys the oldest has it. The others keep everything they have, but are not found
 * by it: which person was meant nobody can tell, and guessing would let one of them in as the other.
 *
 * @returns those others, each time anew.
 */
export async function keyEmails(database: Database): Promise<EmailConflict[]> {
  const conflicts: EmailConflict[] = [];
  for (let after = { created_at: '-infinity', id: '' }; ; ) {
    const rows = await database.query<Row>(
      `SELECT id, email, created_at::text FROM accounts
        WHERE email_key IS NULL AND (created_at, id) > ($1::timestamptz, $2)
        ORDER BY created_at, id LIMIT $3`,
      [after.created_at, after.id, BATCH],
    );
    const last = rows.at(-1);
    if (last === undefined) return conflicts;
    after = last;
    let found = await conflictsOf(database, rows);
    if (found.length < rows.length) {
      await keyRows(database, rows);
      found = await conflictsOf(database, rows);
    }
    conflicts.push(...found);
  }
}

async function keyRows(database: Database, rows: readonly Row[]): Promise<void> {
  // From the last to the first, so that the oldest one of each key stays.
  const oldest = new Map(rows.toReversed().map((row) => [emailKey(row.email), row]));
  await database.transaction(async (tx) => {
    // Of nodes that start at once, and of a command beside them, one after the other.
    await tx.query('LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE');
    await tx.query(
      `UPDATE accounts a SET email_key = line.email_key
        FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, email, email_key)
        WHERE a.id = line.id AND a.email = line.email AND a.email_key IS NULL
          AND NOT EXISTS (SELECT FROM accounts h WHERE h.email_key = line.email_key)`,
      [
        [...oldest.values()].map(({ id }) => id),
        [...oldest.values()].map(({ email }) => email),
        [...oldest.keys()],
      ],
    );
  });
}

/** A regular expression of PostgreSQL that leaves few addresses to check here. */
const PLAIN_ADDRESS =
  '^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@([A-Za-z0-9]+(-[A-Za-z0-9]+)*\\.)+[A-Za-z]+$';

/** Returns the ids of accounts with an address of the former rule, which mail may not reach. */
export async function accountsWithOddEmails(database: Database): Promise<string[]> {
  const rows = await database.query<Pick<Row, 'id' | 'email'>>(
    'SELECT id, email FROM accounts WHERE email !~ $1 ORDER BY created_at, id',
    [PLAIN_ADDRESS],
  );
  return rows.filter(({ email }) => !isMailbox(email)).map(({ id }) => id);
}

/** Those of them that have no key, for another account has it. */
function conflictsOf(database: Database, rows: readonly Row[]): Promise<EmailConflict[]> {
  return database.query<EmailConflict>(
    `SELECT a.id AS "accountId", h.id AS holder
      FROM unnest($1::text[], $2::text[]) AS line (id, email_key)
      JOIN accounts a ON a.id = line.id AND a.email_key IS NULL
      JOIN accounts h ON h.email_key = line.email_key
      ORDER BY a.created_at, a.id`,
    [rows.map(({ id }) => id), rows.map(({ email }) => emailKey(email))],
  );
}
