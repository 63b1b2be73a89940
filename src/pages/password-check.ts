/** Checks a password that was typed on one of our pages, and counts and records what was wrong. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Activity } from '../accounts/activity.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import type { AttemptLimit } from '../attempt-limits.ts';
import { originOf } from './page.ts';

/**
 * The account, or why not, as a sentence for the person: the same one for a wrong email address and
 * a wrong password. Sets the status of a refusal (401, or 429 with `Retry-After`).
 */
export type PasswordCheck = (
  ctx: Context,
  credentials: { email: string; password: string },
) => Promise<Account | string>;

export function createPasswordCheck({
  signIn,
  accounts,
  activity,
  failures,
  log,
}: {
  signIn: SignIn;
  accounts: AccountRegistry;
  activity: Activity;
  /** Failed sign-ins, counted per email address and network address. */
  failures: AttemptLimit;
  log: Logger;
}): PasswordCheck {
  async function recordFailure(ctx: Context, email: string): Promise<void> {
    const origin = originOf(ctx);
    const account = await accounts.findByEmail(email);
    if (!account) return;
    const accountId = account.id;
    await activity.record({ action: 'sign_in_failed', actor: 'person', accountId, origin });
  }

  return async (ctx, { email, password }) => {
    const key = `${email.trim().toLowerCase()} ${ctx.ip}`;
    const seconds = await failures.secondsUntilAllowed(key);
    if (seconds !== undefined) {
      ctx.status = 429;
      ctx.set('Retry-After', String(seconds));
      const minutes = Math.ceil(seconds / 60);
      return `Too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
    }
    // Counted before it is looked at, or as many guesses as come at once would all be looked at.
    await failures.recordFailure(key);
    const account = await signIn({ email, password }).catch(async (error: unknown) => {
      // The storage was away: that was no guess.
      await failures.forget(key);
      throw error;
    });
    if (account !== 'refused') {
      await failures.forget(key);
      return account;
    }
    // Not awaited: how long it takes must not tell whether there is such an account.
    recordFailure(ctx, email).catch((err: unknown) => {
      log.warn({ err }, 'a failed sign-in could not be recorded');
    });
    ctx.status = 401;
    return 'The email address or the password is not right.';
  };
}
