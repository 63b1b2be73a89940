/** The check behind the sign-in page: one answer, and the same work, for everything that is wrong. */
import type { Queries } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from './account.ts';
import { emailKey } from './email.ts';
import { verifyPassword } from './passwords/password.ts';
import type { PasswordTurn } from './passwords/work.ts';

/**
 * The account, or `refused`: which of email, password or suspension was wrong is not said, and the
 * time does not tell it either.
 *
 * @param attempt `rank` says whether the browser is one that knows the account.
 * @throws TooManyPasswords when too many sign in at once.
 */
export type SignIn = (
  attempt: PasswordTurn & { readonly password: string },
) => Promise<Account | 'refused'>;

/** Counting failures is for the caller. */
export function createSignIn(parts: { readonly database: Queries }): SignIn {
  return async ({ password, ...turn }) => {
    // The database is asked for what is no address too.
    const [row] = await parts.database.query<AccountRow>(
      `${SELECT_ACCOUNTS} WHERE email_key = $1`,
      [emailKey(turn.email)],
    );
    const isRight = await verifyPassword(row?.password_hash ?? undefined, password, turn);
    if (row === undefined || !isRight || row.suspended_at !== null) return 'refused';
    return accountFrom(row);
  };
}
