/** Gives each account the key of its address (email.ts) that has none: those of before there were any. */
import type { Database } from '../storage/queries.ts';
import { emailKey } from './email.ts';

/** Somebody who cannot sign in by an address, for the account `holder` has the same one. */
export interface EmailConflict {
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
