/** Route steps of the pages that belong to a person: who is signed in, and since when. */
import type { Context, Next } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import { formOf } from '../provider/form.ts';
import { type PageHost, seeOther, signedInAccount } from './page.ts';
import type { PasswordCheck } from './password-check.ts';
import { loginPath } from './sign-in.ts';

/** How long a sign-in is good for what a thief of the session would do first. */
const RECENT_SECONDS = 600;

export interface SignedInSteps {
  /** Goes on with somebody signed in (see `accountOf`); sends everybody else to sign in. */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * After `requireSignedIn` and the form: goes on when the sign-in is recent, else asks for the
   * password on a page that carries the form along, so that nothing typed is lost.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
}

const accounts = new WeakMap<Context, Account>();

/** Who is signed in, in the steps after `requireSignedIn`. */
export function accountOf(ctx: Context): Account {
  const account = accounts.get(ctx);
  if (!account) throw new TypeError('requireSignedIn must come before');
  return account;
}

export function signedInSteps(parts: {
  host: PageHost;
  clock: Clock;
  accounts: AccountRegistry;
  sessions: BrowserSessions;
  checkPassword: PasswordCheck;
}): SignedInSteps {
  const { host, clock, sessions, checkPassword } = parts;
  return {
    async requireSignedIn(ctx, next) {
      const account = await signedInAccount(ctx, parts);
      if (!account) return seeOther(ctx, loginPath(ctx.path));
      accounts.set(ctx, account);
      // Whoever visits pages is not idle, with JavaScript or without.
      if (ctx.method === 'GET') await sessions.keepAlive(ctx);
      await next();
    },

    async requireRecentSignIn(ctx, next) {
      const account = accountOf(ctx);
      const session = await sessions.current(ctx);
      if (epochSeconds(clock) - (session?.signedInAt ?? 0) <= RECENT_SECONDS) return next();
      const form = formOf(ctx);
      const password = form.get('current_password');
      const outcome =
        password === null
          ? undefined
          : await checkPassword(ctx, { email: account.email, password, accountId: account.id });
      if (outcome !== undefined && typeof outcome !== 'string') {
        await sessions.signIn(ctx, account);
        return next();
      }
      await host.render(ctx, 'confirm-password', {
        action: ctx.url,
        formToken: host.formToken(ctx),
        email: account.email,
        carried: [...form]
          .filter(([name]) => name !== 'form_token' && name !== 'current_password')
          .map(([name, value]) => ({ name, value })),
        ...(outcome !== undefined && { problem: outcome }),
      });
    },
  };
}
