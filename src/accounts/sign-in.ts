/** The check behind the sign-in page: every failure has the same answer and takes the same work. */
import type { Queries } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from './account.ts';
import { emailKey } from './email.ts';
import { verifyPassword } from './passwords/password.ts';
import type { PasswordTurn } from './passwords/work.ts';

/**
 * Returns the account, or `refused`: neither the answer nor the time reveals whether the email, the
 * password or a suspension was the reason.
 *
 * @param attempt `rank` says whether the browser is one that knows the account.
 * @throws TooManyPasswords if too many users sign in at once.
 */
export type SignIn = (
  attempt: PasswordTurn & { readonly password: string },
) => Promise<Account | 'refused'>;

/** The caller must count failures. */
export function createSignIn(parts: { readonly database: Queries }): SignIn {
  return async ({ password, ...turn }) => {
    // Query the database even if the text is not an address: the work must be the same.
    const [row] = await parts.database.query<AccountRow>(
      `${SELECT_ACCOUNTS} WHERE email_key = $1`,
      [emailKey(turn.email)],
    );
    const isRight = await verifyPassword(row?.password_hash ?? undefined, password, turn);
    if (row === undefined || !isRight || row.suspended_at !== null) return 'refused';
    return accountFrom(row);
  };
}
