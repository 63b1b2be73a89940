/** `/forgot-password`: mails a one-time link, and never tells whether there is such an account. */
import type { Context } from 'koa';
import { normalizeEmail } from '../accounts/email.ts';
import type { PasswordLinkRequests } from '../accounts/password-link-requests.ts';
import type { AttemptLimit } from '../attempt-limits.ts';
import { networkOf } from '../network-address.ts';
import { formOf } from '../provider/form.ts';
import { originOf, type PageHost } from './page.ts';
import { get, type PageSteps, post, type Route } from './routes.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

declare module './view-data.ts' {
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
  /** Said instead of the form when one was sent. */
  readonly sent: string | undefined;
}

const SENT =
  'If there is an account with that address, a link to choose a new password is on its way.';

const PATH = '/forgot-password';

export interface ForgotPasswordParts {
  readonly host: PageHost;
  readonly steps: PageSteps;
  readonly waiting: WaitingSignIn;
  /** Absent where no mail is sent: there is no such page then. */
  readonly linkRequests:
    | {
        readonly requests: PasswordLinkRequests;
        /** Per network address, whoever they are for: nobody has mail sent to everybody. */
        readonly perAddress: AttemptLimit;
      }
    | undefined;
}

/** Absent where there is no such page. */
export const forgotPasswordUrlOf = ({
  linkRequests,
}: Pick<ForgotPasswordParts, 'linkRequests'>): string | undefined => linkRequests && PATH;

export function forgotPasswordPage(parts: ForgotPasswordParts): Route[] {
  const { host, steps, waiting, linkRequests } = parts;
  if (!linkRequests) return [];
  const { requests, perAddress } = linkRequests;

  const draw = async (ctx: Context, view: Partial<ForgotPasswordView> = {}): Promise<void> =>
    host.render(ctx, 'forgot-password', {
      action: ctx.path,
      signInUrl: await waiting.path(ctx),
      email: '',
      problem: undefined,
      sent: undefined,
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
    await host.notices.tell(ctx, ctx.path, SENT);
  }

  return [get(PATH, show), post(PATH, ...steps.form, submit)];
}
