/** `/login`, and the sign-in step of an authorization request: who is this person? */
import type { Context } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { SignIn } from '../accounts/sign-in.ts';
import type { AttemptLimit } from '../attempt-limits.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import { formOf } from '../provider/form.ts';
import type { Interactions, PendingInteraction } from '../provider/interactions.ts';
import { type PageHost, seeOther, signedInAccount } from './page.ts';
import type { SignInView } from './view-data.ts';

export interface SignInParts {
  readonly host: PageHost;
  readonly accounts: AccountRegistry;
  readonly sessions: BrowserSessions;
  readonly interactions: Interactions;
  readonly signIn: SignIn;
  /** Failed sign-ins, counted per email address and network address. */
  readonly failures: AttemptLimit;
}

const TITLE = 'Sign in';
/** Where a person goes who was on the way to nowhere else. */
const HOME = '/profile';

export function signInPage(parts: SignInParts) {
  const { host, accounts, sessions, interactions, failures } = parts;

  const draw = (ctx: Context, view: Omit<SignInView, 'title' | 'formToken'>): Promise<void> =>
    host.render(ctx, 'sign-in', { title: TITLE, formToken: host.formToken(ctx), ...view });

  /** The account, or the sentence for the person. The same one for a wrong email and password. */
  async function attempt(ctx: Context): Promise<Account | string> {
    const form = formOf(ctx);
    const email = form.get('email') ?? '';
    const key = `${email.trim().toLowerCase()} ${ctx.ip}`;
    const seconds = await failures.secondsUntilAllowed(key);
    if (seconds !== undefined) {
      ctx.status = 429;
      ctx.set('Retry-After', String(seconds));
      const minutes = Math.ceil(seconds / 60);
      return `Too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
    }
    const account = await parts.signIn({ email, password: form.get('password') ?? '' });
    if (account !== 'refused') {
      await failures.forget(key);
      return account;
    }
    await failures.recordFailure(key);
    ctx.status = 401;
    return 'The email address or the password is not right.';
  }

  return {
    /** `GET /login` */
    async show(ctx: Context): Promise<void> {
      const target = pathOfOurs(ctx.query.return_to);
      if (await signedInAccount(ctx, { sessions, accounts })) return seeOther(ctx, target);
      await draw(ctx, { action: loginPath(target), email: '' });
    },

    /** `POST /login` */
    async submit(ctx: Context): Promise<void> {
      const target = pathOfOurs(ctx.query.return_to);
      const outcome = await attempt(ctx);
      if (typeof outcome === 'string') {
        const email = formOf(ctx).get('email') ?? '';
        return draw(ctx, { action: loginPath(target), email, problem: outcome });
      }
      await sessions.signIn(ctx, outcome.id);
      seeOther(ctx, target);
    },

    /** `GET /interaction/:uid` while it waits for a sign-in. */
    showFor(ctx: Context, { client, loginHint }: PendingInteraction): Promise<void> {
      return draw(ctx, { action: ctx.path, email: loginHint ?? '', client, cancel: true });
    },

    /** `POST /interaction/:uid` while it waits for a sign-in. */
    async submitFor(ctx: Context, { client }: PendingInteraction): Promise<void> {
      const form = formOf(ctx);
      if (form.get('decision') === 'deny') return seeOther(ctx, await interactions.deny(ctx));
      const outcome = await attempt(ctx);
      if (typeof outcome === 'string') {
        const email = form.get('email') ?? '';
        return draw(ctx, { action: ctx.path, email, client, cancel: true, problem: outcome });
      }
      seeOther(ctx, await interactions.signIn(ctx, outcome.id));
    },
  };
}

/** The sign-in page that leads back to `target`. */
export const loginPath = (target: string): string =>
  target === HOME ? '/login' : `/login?return_to=${encodeURIComponent(target)}`;

/** Only a path below the profile: anything else a link could carry leads to the profile itself. */
function pathOfOurs(target: unknown): string {
  const isOurs = typeof target === 'string' && /^\/profile(\/[A-Za-z0-9_/-]*)?$/.test(target);
  return isOurs ? target : HOME;
}
