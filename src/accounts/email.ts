/** Which email addresses accounts can have, and when two are the same. */

import { sha256 } from '../base/random-id.ts';
import { pageOf } from '../storage/pages.ts';
import type { Database } from '../storage/queries.ts';
import { inOwnScript, isMailbox, MAX_ADDRESS_BYTES } from '../texts/mailbox.ts';

/**
 * The rule of earlier versions: one @, a dot in the domain, nothing invisible. Older accounts may
 * have an address that `newEmailProblem` refuses, so sign-ins and look-ups still use this rule.
 */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/**
 * Returns the spelling that is stored, shown and used for mail, or undefined if no account can have
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
 * Text that is no address gets a key, too: one that PostgreSQL accepts and no account has.
 */
export function emailKey(entered: string): string {
  const email = normalizeEmail(entered);
  return email === undefined ? `no address ${sha256(entered)}` : folded(email);
}

/**
 * Returns why no account may get this address now, or undefined if that is allowed. Accounts that
 * already have the address keep it.
 *
 * @param email a result of `normalizeEmail`.
 * @returns `other`: the address to use instead, if there is one.
 */
export function newEmailProblem(email: string): { readonly other?: string } | undefined {
  const other = otherEmailMeant(email) ?? inOwnScript(email);
  if (other !== undefined) return { other };
  return isMailbox(email) ? undefined : {};
}

/**
 * True if a provider's address is an account's address. Only ASCII letter case may differ. Do not
 * normalize the addresses: NFC turns the Kelvin sign into a K, but these may be two mailboxes.
 */
export function isSameMailbox(kept: string, claimed: string): boolean {
  return inAsciiLowerCase(kept) === inAsciiLowerCase(claimed);
}

const inAsciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * Returns the normalized spelling of `email` if the two differ in more than letter case. Mail to
 * the two spellings may reach two people, so no account may get the address `email`.
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
  // Convert to lower case first, because the capital sharp s is its own upper case.
  const caseless = compatible.toLowerCase().toUpperCase().normalize('NFKD');
  return lowered(caseless).replaceAll('i\u0307', 'i').normalize('NFKC');
}

/** Converts to lower case, and treats a final sigma as the same letter as any other sigma. */
const lowered = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');

/** An account that cannot sign in by its address, because the account `holder` has the same address. */
interface EmailConflict {
  readonly accountId: string;
  readonly holder: string;
}

interface Row {
  readonly id: string;
  readonly email: string;
  /** Text, because a Date has no microseconds: the next page would repeat this page's last row. */
  readonly created_at: string;
}

const BATCH = 1_000;

/**
 * Must be called once the schema exists, before any account is looked up. If accounts have equal
 * keys, only the oldest gets the key. The others keep everything, but are not found by their
 * address: a wrong guess would let one user sign in as another.
 *
 * @returns all accounts without a key, also if they were returned before.
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
  // Go from the newest to the oldest account, so that the oldest one of each key remains.
  const oldest = new Map(rows.toReversed().map((row) => [emailKey(row.email), row]));
  await database.transaction(async (tx) => {
    // Nodes that start at the same time, and operator commands, wait here for each other.
    await tx.query('LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE');
    await tx.query(
      `UPDATE accounts a SET email_key = line.email_key
        FROM unnest($1::text[], $2::text[], $3::text[]) AS line (id, email, email_key)
        WHERE a.id = line.id AND a.email = line.email AND a.email_key IS NULL
          AND NOT EXISTS (SELECT FROM accounts h WHERE h.email_key = line.email_key)`,
      [[...oldest.values()].map(({ id }) => id), [...oldest.values()].map(({ email }) => email), [...oldest.keys()]],
    );
  });
}

/** PostgreSQL skips the addresses that match, so that only a few must be checked here. */
const PLAIN_ADDRESS = '^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@([A-Za-z0-9]+(-[A-Za-z0-9]+)*\\.)+[A-Za-z]+$';

/** Returns the ids of accounts whose address is no mailbox by `isMailbox`: mail may not arrive. */
export async function accountsWithOddEmails(database: Database): Promise<string[]> {
  const select = 'SELECT id, email, created_at FROM accounts';
  const filters = [['email !~ $', PLAIN_ADDRESS]] as const;
  const query = { select, order: ['created_at', 'id'], cells: [], filters };
  const { items } = await pageOf<Pick<Row, 'id' | 'email'>>(database, query, {});
  return items.filter(({ email }) => !isMailbox(email)).map(({ id }) => id);
}

/** Returns the accounts without a key, each with the account that has the key. */
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
