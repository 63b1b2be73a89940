/** The stored record of a user. */
import { ACCOUNT_ID } from '../base/random-id.ts';
import { type Queries, type RowOf, withoutNulls } from '../storage/queries.ts';

export interface Account {
  readonly id: string;
  /** The address as it was entered. Equal addresses in different spellings have the same `emailKey` (email.ts). */
  readonly email: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  /** False before the user sets a password, and after the user has removed it (`endUnrecognized`). */
  readonly hasPassword: boolean;
  readonly createdAt: Date;
  /** Sessions of an earlier generation have ended. */
  readonly sessionGeneration: number;
  readonly unwantedMail: readonly string[];
  /** The language that the user chose for pages and mails. This version of the service may not have it any more. */
  readonly language?: string;
  /** The user's id in the system that accounts are imported from; absent if created manually. */
  readonly externalId?: string;
}

export const ACCOUNT_STATES = ['active', 'suspended', 'no password yet'] as const;
export type AccountState = (typeof ACCOUNT_STATES)[number];

/** Kinds of sign-in methods of an account, including those that the settings now disable. */
export type SignInMethodKind = 'password' | 'passkey' | 'provider';

export interface ListedAccount extends Account {
  readonly signInMethods: readonly SignInMethodKind[];
}

export function stateOf({ isSuspended, signInMethods }: ListedAccount): AccountState {
  if (isSuspended) return 'suspended';
  return signInMethods.length > 0 ? 'active' : 'no password yet';
}

/** Matches email addresses of `doctor` accounts. No user has such an address: `.invalid` gets no mail (RFC 2606 §2). */
export const DOCTOR_EMAIL_PATTERN = 'doctor-%@gatehouse.invalid';

/** Check an id with this before a query, because PostgreSQL throws for ids with a NUL byte. */
export const isAccountId = (id: string): boolean => ACCOUNT_ID.test(id);

/** 2^53 is higher than the generation of any session, so all sessions are refused. */
export const NO_GENERATION = '9007199254740992';

/** SQL bigint: the account's session generation plus that of all accounts; `NO_GENERATION` if the latter is lost. */
export const SESSION_GENERATION = `coalesce(
  session_generation + (SELECT n.session_generation FROM lasting_numbers n), ${NO_GENERATION})`;

/** SQL condition: the row of `accounts` has an active session with the given values, which are SQL expressions. */
export const hasActiveSession = (uid: string, generation: string, cookieHash = 'cookie_hash'): string => `(
  suspended_at IS NULL AND ${SESSION_GENERATION} <= ${generation} AND EXISTS (SELECT FROM browser_sessions s
    WHERE uid = ${uid} AND account_id = accounts.id AND ended_at IS NULL AND cookie_hash = ${cookieHash}))`;

export const ACCOUNT_COLUMNS = `id, email, name, password_hash IS NOT NULL AS "hasPassword", created_at AS "createdAt",
  suspended_at IS NOT NULL AS "isSuspended", suspended_at AS "suspendedAt",
  ${SESSION_GENERATION}::float8 AS "sessionGeneration", unwanted_mail AS "unwantedMail",
  external_id AS "externalId", language`;
export const SELECT_ACCOUNTS = `SELECT ${ACCOUNT_COLUMNS} FROM accounts`;

/** SQL: all accounts with their sign-in methods and their `state` (see `stateOf`). */
export const LISTED_ACCOUNTS = `SELECT *, CASE WHEN "isSuspended" THEN 'suspended'
    WHEN "signInMethods" = '{}' THEN 'no password yet' ELSE 'active' END AS state
  FROM (SELECT ${ACCOUNT_COLUMNS}, array_remove(ARRAY[
      CASE WHEN password_hash IS NOT NULL THEN 'password' END,
      CASE WHEN EXISTS (SELECT FROM passkeys p WHERE p.account_id = a.id) THEN 'passkey' END,
      CASE WHEN EXISTS (SELECT FROM account_identities i WHERE i.account_id = a.id)
        THEN 'provider' END], NULL) AS "signInMethods" FROM accounts a) AS person`;

export type AccountRow = RowOf<Account>;

/** Copies only the columns of an account, because the row may also contain the hash of the password. */
export const accountFrom = (row: AccountRow): Account =>
  withoutNulls<Account>({
    id: row.id,
    email: row.email,
    name: row.name,
    isSuspended: row.isSuspended,
    suspendedAt: row.suspendedAt,
    hasPassword: row.hasPassword,
    createdAt: row.createdAt,
    sessionGeneration: row.sessionGeneration,
    unwantedMail: row.unwantedMail,
    language: row.language,
    externalId: row.externalId,
  });

/** Unlike `AccountRegistry.find`, reads the account as the transaction sees it. */
export async function readAccount(tx: Queries, id: string): Promise<Account | undefined> {
  const [row] = await tx.query<AccountRow>(`${SELECT_ACCOUNTS} WHERE id = $1`, [id]);
  return row && accountFrom(row);
}
