/** Checks the password for the sign-in page. Failures differ neither in result nor in time. */
import type { Queries } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from './account.ts';
import { emailKey } from './email.ts';
import { verifyPassword } from './passwords/password.ts';
import type { PasswordTurn } from './passwords/work.ts';

/**
 * Returns the account, or `refused`: neither the answer nor the time reveals whether the email, the
 * password or a suspension was the reason.
 *
 * @param attempt `rank` is `known` if the account has signed in from this browser before.
 * @throws TooManyPasswords if too many users sign in at once.
 */
export type SignIn = (attempt: PasswordTurn & { readonly password: string }) => Promise<Account | 'refused'>;

/** Returns a check that counts no failures: its caller must. */
export function createSignIn(parts: { readonly database: Queries }): SignIn {
  return async ({ password, ...turn }) => {
    // Query the database even if the text is no address, so that the time does not reveal that.
    const [row] = await parts.database.query<AccountRow>(`${SELECT_ACCOUNTS} WHERE email_key = $1`, [
      emailKey(turn.email),
    ]);
    const isRight = await verifyPassword(row?.password_hash ?? undefined, password, turn);
    if (row === undefined || !isRight || row.suspended_at !== null) return 'refused';
    return accountFrom(row);
  };
}
