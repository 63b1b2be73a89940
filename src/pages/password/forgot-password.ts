/** `/forgot-password`: mails a one-time link, and never tells whether there is such an account. */
import type { Context } from 'koa';
import { normalizeEmail } from '../../accounts/email.ts';
import { createPasswordLinkRequests } from '../../accounts/passwords/link-mail.ts';
import type { PasswordLinks } from '../../accounts/passwords/links.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { formOf } from '../../provider/form.ts';
import { originOf } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';
import { comesFrom } from '../sign-in/upstream-ways.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'forgot-password': ForgotPasswordView;
  }
}

interface ForgotPasswordView {
  readonly action: string;
  /** What was typed before, or empty. */
  readonly email: string;
  readonly problem: string | undefined;
  /** Back to the sign-in that was begun. */
  readonly signInUrl: string;
  /** Where people of that address sign in, whoever has an account. */
  readonly elsewhere: string | undefined;
  /** Said instead of the form when one was sent. */
  readonly sent: string | undefined;
}

const SENT =
  'If there is an account with that address, a link to choose a new password is on its way.';

export const FORGOT_PASSWORD = '/forgot-password';

export function createLinkRequests({
  hourlyLimit,
  passwordLinks: links,
  ...parts
}: Omit<Parameters<typeof createPasswordLinkRequests>[0], 'links' | 'perAccount'> & {
  readonly passwordLinks: PasswordLinks;
  hourlyLimit(name: string, attempts: number): AttemptLimit;
}): NonNullable<PageParts['linkRequests']> {
  const perAccount = hourlyLimit('forgot_account', 3);
  return {
    requests: createPasswordLinkRequests({ ...parts, links, perAccount }),
    perAddress: hourlyLimit('forgot_address', 30),
  };
}

/** Nothing where no mail is sent. */
export function forgotPasswordPage(parts: PageParts): Route[] {
  const { host, steps, waiting, linkRequests, upstream } = parts;
  if (!linkRequests) return [];
  const { requests, perAddress } = linkRequests;

  /** By the address alone, for any of them. */
  const elsewhere = (email: string): string | undefined => {
    const way = upstream.wayOf(email);
    return way && comesFrom(way);
  };

  const draw = async (ctx: Context, view: Partial<ForgotPasswordView> = {}): Promise<void> =>
    host.render(ctx, 'forgot-password', {
      action: ctx.path,
      signInUrl: await waiting.path(ctx),
      email: '',
      problem: undefined,
      sent: undefined,
      elsewhere: elsewhere(view.email ?? ''),
      ...view,
    });

  /** The address may come along, typed on the page before. */
  async function show(ctx: Context): Promise<void> {
    const email = normalizeEmail(String(ctx.query.email ?? '')) ?? '';
    await draw(ctx, { email, sent: await host.notices.take(ctx) });
  }

  async function submit(ctx: Context): Promise<void> {
    const email = formOf(ctx).get('email') ?? '';
    if (normalizeEmail(email) === undefined) {
      ctx.status = 422;
      return draw(ctx, { email, problem: 'Enter an email address, like ada@example.com.' });
    }
    const over = await perAddress.count(networkOf(ctx.ip));
    if (over) {
      ctx.status = 429;
      ctx.set('Retry-After', String(over.seconds));
      const problem = 'Too many links were asked for from your network. Try again in an hour.';
      return draw(ctx, { email, problem });
    }
    // Nothing of it is awaited: the answer is the same, and as fast, whoever asks for whom.
    requests.begin(email, originOf(ctx));
    const way = elsewhere(email);
    await host.notices.tell(ctx, ctx.path, way === undefined ? SENT : `${SENT} ${way}`);
  }

  return [get(FORGOT_PASSWORD, show), post(FORGOT_PASSWORD, ...steps.form, submit)];
}
