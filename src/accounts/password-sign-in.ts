/** Checks the password for the sign-in page. Failures differ neither in result nor in time. */
import type { Logger } from 'pino';
import type { Queries } from '../storage/queries.ts';
import { ACCOUNT_COLUMNS, type Account, type AccountRow, accountFrom } from './account.ts';
import { emailKey } from './email.ts';
import { verifyPassword } from './passwords/password.ts';
import type { PasswordTurn } from './passwords/work.ts';

/**
 * Returns the account, or `refused`. Neither the answer nor the time reveals whether the email, the password or a
 * suspension was the reason. `rank` is `known` if the account has signed in from this browser before.
 *
 * @throws TooManyPasswords if too many users sign in at once
 */
export type SignIn = (attempt: PasswordTurn & { readonly password: string }) => Promise<Account | 'refused'>;

/** Returns a function that checks passwords. It does not count failures, so the caller must count them. */
export function createSignIn(parts: {
  readonly database: Queries;
  readonly log?: Pick<Logger, 'warn'> | undefined;
}): SignIn {
  const { database, log } = parts;
  return async ({ password, ...turn }) => {
    // Query even if the text is no address, so that the response time does not reveal it.
    const [row] = await database.query<AccountRow & { readonly hash: string | null }>(
      `SELECT ${ACCOUNT_COLUMNS}, password_hash AS hash FROM accounts WHERE email_key = $1`,
      [emailKey(turn.email)],
    );
    const mayEnter = row !== undefined && !row.isSuspended;
    let renewed: string | undefined;
    const renew = (passwordHash: string): void => {
      renewed = passwordHash;
    };
    const stored = row?.hash ?? undefined;
    const isRight = await verifyPassword(stored, password, turn, mayEnter ? renew : undefined);
    if (!mayEnter || !isRight) return 'refused';
    if (renewed !== undefined) {
      // Store the new hash only if the password has not been changed meanwhile.
      await database
        .query('UPDATE accounts SET password_hash = $2 WHERE id = $1 AND password_hash = $3', [row.id, renewed, stored])
        .catch((err: unknown) => log?.warn({ err, accountId: row.id }, 'a password hash could not be renewed'));
    }
    return accountFrom(row);
  };
}
