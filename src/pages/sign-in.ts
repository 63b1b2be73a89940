/** `/login`, and the sign-in step of an authorization request: who is this person? */
import type { Context } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Activity } from '../accounts/activity.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import { formOf } from '../provider/form.ts';
import type { Interactions, PendingSignIn } from '../provider/interactions.ts';
import { noticeOf, originOf, type PageHost, seeOther, signedInAccount } from './page.ts';
import type { PasswordCheck } from './password-check.ts';
import type { SignInView } from './view-data.ts';

export interface SignInParts {
  readonly host: PageHost;
  readonly accounts: AccountRegistry;
  readonly sessions: BrowserSessions;
  readonly interactions: Interactions;
  readonly activity: Activity;
  readonly checkPassword: PasswordCheck;
  /** Absent where no mail is sent. */
  readonly forgotPasswordUrl: string | undefined;
}

const TITLE = 'Sign in';
/** Where a person goes who was on the way to nowhere else. */
const HOME = '/profile';
const NOTICES = { 'password-set': 'Your password is set. Sign in with it now.' };

export function signInPage(parts: SignInParts) {
  const { host, accounts, activity, sessions, interactions, checkPassword, forgotPasswordUrl } =
    parts;

  const draw = (ctx: Context, view: Omit<SignInView, 'title' | 'formToken'>): Promise<void> =>
    host.render(ctx, 'sign-in', {
      title: TITLE,
      formToken: host.formToken(ctx),
      ...(forgotPasswordUrl !== undefined && { forgotPasswordUrl }),
      ...view,
    });

  const attempt = (ctx: Context): Promise<Account | string> =>
    checkPassword(ctx, {
      email: formOf(ctx).get('email') ?? '',
      password: formOf(ctx).get('password') ?? '',
    });

  const recordSignIn = (ctx: Context, { id }: Account): Promise<void> =>
    activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId: id,
      origin: originOf(ctx),
    });

  return {
    /** `GET /login` */
    async show(ctx: Context): Promise<void> {
      const target = pathOfOurs(ctx.query.return_to);
      if (await signedInAccount(ctx, { sessions, accounts })) return seeOther(ctx, target);
      const notice = noticeOf(ctx, NOTICES);
      await draw(ctx, { action: loginPath(target), email: '', ...(notice && { notice }) });
    },

    /** `POST /login` */
    async submit(ctx: Context): Promise<void> {
      const target = pathOfOurs(ctx.query.return_to);
      const outcome = await attempt(ctx);
      if (typeof outcome === 'string') {
        const email = formOf(ctx).get('email') ?? '';
        return draw(ctx, { action: loginPath(target), email, problem: outcome });
      }
      await sessions.signIn(ctx, outcome);
      await recordSignIn(ctx, outcome);
      seeOther(ctx, target);
    },

    /** `GET /interaction/:uid` while it waits for a sign-in. */
    showFor(ctx: Context, { client, loginHint }: PendingSignIn): Promise<void> {
      return draw(ctx, { action: ctx.path, email: loginHint ?? '', client, cancel: true });
    },

    /** `POST /interaction/:uid` while it waits for a sign-in. */
    async submitFor(ctx: Context, { client }: PendingSignIn): Promise<void> {
      const form = formOf(ctx);
      if (form.get('decision') === 'deny') return seeOther(ctx, await interactions.deny(ctx));
      const outcome = await attempt(ctx);
      if (typeof outcome === 'string') {
        const email = form.get('email') ?? '';
        return draw(ctx, { action: ctx.path, email, client, cancel: true, problem: outcome });
      }
      await recordSignIn(ctx, outcome);
      seeOther(ctx, await interactions.signIn(ctx, outcome));
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
