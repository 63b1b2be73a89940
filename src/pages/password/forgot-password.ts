/** `/forgot-password`: mails a one-time link, without revealing whether the account exists. */
import type { Context } from 'koa';
import { normalizeEmail } from '../../accounts/email.ts';
import { MAX_LINKS_AN_HOUR, type PasswordLinkRequests } from '../../accounts/password-links/link-mail.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { networkOf } from '../../base/network-address.ts';
import { formOf } from '../../provider/form.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'forgot-password': ForgotPasswordView;
  }
}

interface ForgotPasswordView {
  readonly action: string;
  readonly email: string;
  readonly problem: Message | undefined;
  /** The URL of the sign-in page from which the user came. */
  readonly signInUrl: string;
  /** The sentence that the page shows instead of the form after it was sent. */
  readonly sent: Text | undefined;
  /** The maximum number of mailed links in an hour. */
  readonly maxAnHour: number;
}

export const FORGOT_PASSWORD = '/forgot-password';

export function forgotPasswordPage(parts: {
  readonly kit: PageKit;
  readonly waiting: Pick<WaitingSignIn, 'path'>;
  readonly linkRequests: PasswordLinkRequests;
  /** Limits how many mails a network can cause, for all accounts together. */
  readonly perAddress: AttemptLimit;
}): Route[] {
  const { kit, waiting, linkRequests, perAddress } = parts;

  const draw = async (ctx: Context, view: Partial<ForgotPasswordView> = {}): Promise<void> =>
    kit.render(ctx, 'forgot-password', {
      action: ctx.path,
      signInUrl: await waiting.path(ctx),
      email: '',
      problem: undefined,
      sent: undefined,
      maxAnHour: MAX_LINKS_AN_HOUR,
      ...view,
    });

  /** The query may contain the email address that the user has typed on the previous page. */
  async function show(ctx: Context): Promise<void> {
    const email = normalizeEmail(String(ctx.query.email ?? '')) ?? '';
    await draw(ctx, { email, sent: await kit.notices.take(ctx) });
  }

  async function submit(ctx: Context): Promise<void> {
    const email = formOf(ctx).get('email') ?? '';
    if (normalizeEmail(email) === undefined) {
      ctx.status = 422;
      return draw(ctx, { email, problem: message('forgot-password.no-address') });
    }
    const over = await perAddress.count(networkOf(ctx.ip));
    if (over) {
      ctx.status = 429;
      ctx.set('Retry-After', String(over.seconds));
      const problem = message('forgot-password.too-many');
      return draw(ctx, { email, problem });
    }
    // Do not await this, because the response time must not depend on whether the account exists.
    linkRequests.begin(email, requestOrigin(ctx));
    await kit.notices.redirect(ctx, ctx.path, message('forgot-password.sent'));
  }

  return [get(FORGOT_PASSWORD, show), post(FORGOT_PASSWORD, ...kit.form, submit)];
}
