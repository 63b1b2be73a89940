/** The stored record of a user. */
import { ACCOUNT_ID } from '../base/random-id.ts';

export interface Account {
  readonly id: string;
  /** The address as it was entered; equal addresses have the same `emailKey` (email.ts). */
  readonly email: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  /** False before the user sets a password, and after they have removed it (`endUnrecognized`). */
  readonly hasPassword: boolean;
  readonly createdAt: Date;
  /** Sessions that began under an earlier generation have ended. */
  readonly sessionGeneration: number;
  /** The kinds of mail that the user has switched off (mail/account-mail.ts). */
  readonly unwantedMail: readonly string[];
  /** The language of pages and mails, if the user has chosen one; it may have been removed since. */
  readonly language?: string;
  /** The user's id in the system that accounts are imported from; absent if created by hand. */
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

/** The address of an account of the doctor. RFC 2606 §2: no mail arrives at `.invalid`, so no user has it. */
export const DOCTOR_EMAIL_PATTERN = 'doctor-%@gatehouse.invalid';

/** Check an id before a query with it: PostgreSQL throws for some invalid ids (with a NUL byte). */
export const isAccountId = (id: string): boolean => ACCOUNT_ID.test(id);

/** 2^53: later than the generation of each session. */
export const NO_GENERATION = '9007199254740992';

/**
 * SQL: the account's own generation and that of all accounts (`endEverySession`), as a bigint;
 * `NO_GENERATION` if the latter is missing.
 */
export const SESSION_GENERATION = `coalesce(
  session_generation + (SELECT c.generation FROM session_cutoff c), ${NO_GENERATION})`;

/** SQL: the row of `accounts` has this active session. Each parameter is SQL, too. */
export const hasActiveSession = (uid: string, generation: string, cookieHash = 'cookie_hash'): string => `(
  suspended_at IS NULL AND ${SESSION_GENERATION} <= ${generation} AND EXISTS (SELECT FROM browser_sessions s
    WHERE uid = ${uid} AND account_id = accounts.id AND ended_at IS NULL AND cookie_hash = ${cookieHash}))`;

export const ACCOUNT_COLUMNS = `id, email, name, password_hash, created_at, suspended_at,
  ${SESSION_GENERATION}::float8 AS session_generation,
  unwanted_mail, external_id, language`;
export const SELECT_ACCOUNTS = `SELECT ${ACCOUNT_COLUMNS} FROM accounts`;

/** SQL: all accounts with their sign-in methods (`sign_in_methods`) and their `state` (see `stateOf`). */
export const LISTED_ACCOUNTS = `SELECT *, CASE WHEN suspended_at IS NOT NULL THEN 'suspended'
    WHEN sign_in_methods = '{}' THEN 'no password yet' ELSE 'active' END AS state
  FROM (SELECT ${ACCOUNT_COLUMNS}, array_remove(ARRAY[
      CASE WHEN password_hash IS NOT NULL THEN 'password' END,
      CASE WHEN EXISTS (SELECT FROM passkeys p WHERE p.account_id = a.id) THEN 'passkey' END,
      CASE WHEN EXISTS (SELECT FROM account_identities i WHERE i.account_id = a.id)
        THEN 'provider' END], NULL) AS sign_in_methods FROM accounts a) AS person`;

export interface AccountRow {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly password_hash: string | null;
  readonly created_at: Date;
  readonly suspended_at: Date | null;
  readonly session_generation: number;
  readonly unwanted_mail: string[];
  readonly external_id: string | null;
  readonly language: string | null;
}

export function accountFrom(row: AccountRow): Account {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    isSuspended: row.suspended_at !== null,
    ...(row.suspended_at !== null && { suspendedAt: row.suspended_at }),
    hasPassword: row.password_hash !== null,
    createdAt: row.created_at,
    sessionGeneration: row.session_generation,
    unwantedMail: row.unwanted_mail,
    ...(row.external_id !== null && { externalId: row.external_id }),
    ...(row.language !== null && { language: row.language }),
  };
}
