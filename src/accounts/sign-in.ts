/** The check behind the sign-in page: one answer, and the same work, for everything that is wrong. */
import type { Queries } from '../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from './account.ts';
import { normalizeEmail } from './email.ts';
import { verifyPassword } from './password.ts';
import type { Rank } from './password-work.ts';

/**
 * The account, or `refused`: which of email, password or suspension was wrong is not said, and the
 * time does not tell it either.
 *
 * @throws TooManyPasswords when too many strangers sign in at once.
 */
export type SignIn = (credentials: {
  readonly email: string;
  readonly password: string;
  /** Whether the browser is one that knows the account. */
  readonly rank?: Rank;
}) => Promise<Account | 'refused'>;

/** Counting failures is for the caller. */
export function createSignIn(parts: { readonly database: Queries }): SignIn {
  return async ({ email, password, rank }) => {
    // The database is asked for what is no address too; no account has the empty one.
    const [row] = await parts.database.query<AccountRow>(
      `${SELECT_ACCOUNTS} WHERE lower(email) = lower($1)`,
      [normalizeEmail(email) ?? ''],
    );
    const isRight = await verifyPassword(row?.password_hash ?? undefined, password, rank);
    if (row === undefined || !isRight || row.suspended_at !== null) return 'refused';
    return accountFrom(row);
  };
}
