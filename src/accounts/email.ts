/** Which email addresses accounts can have, and when two are the same. */
import { inOwnScript, isMailbox, MAX_ADDRESS_BYTES } from '../base/mailbox.ts';
import { sha256 } from '../base/random-id.ts';
import type { Database } from '../storage/queries.ts';

/**
 * The former rule: one @, a dot in the domain, nothing invisible. Accounts of that time may have an
 * address that `newEmailProblem` refuses, so sign-ins and look-ups still use this rule.
 */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/**
 * Returns the spelling that is stored, shown and mailed to, or undefined if no account can have
 * this address. New addresses must pass `newEmailProblem` as well.
 */
export function normalizeEmail(entered: string): string | undefined {
  const email = entered.normalize('NFC').trim();
  return Buffer.byteLength(email) <= MAX_ADDRESS_BYTES && EMAIL.test(email) ? email : undefined;
}

/**
 * Returns one text for all spellings of an address. `accounts.email_key` stores it, and look-ups,
 * limits and turns use it, so every spelling that finds an account is limited as that account.
 *
 * Text that is no address has a key as well, which no account has and PostgreSQL accepts.
 */
export function emailKey(entered: string): string {
  const email = normalizeEmail(entered);
  return email === undefined ? `no address ${sha256(entered)}` : folded(email);
}

/**
 * Returns why an address must not be given to an account, or undefined if it may. An account that
 * already has it keeps it.
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
 * normalize before: NFC turns the Kelvin sign into a K, but the two may be mailboxes of two people.
 */
export function isSameMailbox(kept: string, claimed: string): boolean {
  return inAsciiLowerCase(kept) === inAsciiLowerCase(claimed);
}

const inAsciiLowerCase = (text: string): string =>
  text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * Returns the address that this one is mistaken for if they differ in more than letter case: mail
 * to the two may reach two people, so no account is made under such a spelling.
 */
export function otherEmailMeant(email: string): string | undefined {
  const key = folded(email);
  return key === lowered(email) ? undefined : key;
}

/**
 * Compatibility forms (UAX #15, NFKC) without letter case and ignorable characters, a bit coarser
 * than NFKC_Casefold (UAX #44), which UTS #46 uses for domains: dotted capital I and dotless i are
 * an i here, because databases, languages and keyboards disagree on their other case. Stable for
 * all assigned characters, and addresses have no others: keys outlive newer Unicode versions.
 */
function folded(email: string): string {
  const compatible = email.normalize('NFKD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  // Lower case first: the capital sharp s is its own upper case.
  const caseless = compatible.toLowerCase().toUpperCase().normalize('NFKD');
  return lowered(caseless).replaceAll('i\u0307', 'i').normalize('NFKC');
}

/** Treats the sigma at the end of a word as the same letter. */
const lowered = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');

/** An account that cannot sign in by its address, because the account `holder` has the same one. */
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
 * Must be called once the schema exists, before any account is looked up. Of accounts with equal
 * keys the oldest gets the key. The others keep everything, but are not found by their address:
 * nothing says which user is meant, and a wrong guess would let one of them in as the other.
 *
 * @returns those others, at every call.
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
  // Go from the last to the first, so that the oldest account of each key remains.
  const oldest = new Map(rows.toReversed().map((row) => [emailKey(row.email), row]));
  await database.transaction(async (tx) => {
    // Nodes that start at once, and a command that runs meanwhile, wait here for each other.
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

/** A regular expression for PostgreSQL that leaves only few addresses to be checked here. */
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

/** Returns those of the accounts that have no key because another account has it. */
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
