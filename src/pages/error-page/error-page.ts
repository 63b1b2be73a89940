/** The page that users see after an error. */
import type { Context } from 'koa';
import { type Message, message, type Text, type Values } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import type { AuthorizationRefusal } from '../../provider/provider.ts';
import type { Render } from '../view-data.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly error: ErrorView;
  }
}

interface ErrorView {
  readonly heading: Text;
  readonly explanation: Text;
  readonly advice: Text;
  /** The app whose request was refused, and the host in its redirect URI; undefined if the app is unknown. */
  readonly app: AuthorizationRefusal['app'];
  /** What the user had typed into the refused form, which the browser would otherwise lose. */
  readonly typed: readonly { readonly label: Message; readonly values: readonly string[] }[];
  /** Links to pages on which the user can continue; the link that most users want is first. */
  readonly links: readonly { readonly href: string; readonly label: Text }[];
  readonly requestId: string;
}

export type ErrorText = Pick<ErrorView, 'heading' | 'explanation' | 'advice'> &
  Partial<Pick<ErrorView, 'links' | 'typed' | 'app'>>;

const PROFILE = { href: '/profile', label: message('errors.to-profile') };

type ErrorName =
  | (typeof NAMES)[keyof typeof NAMES]
  | (typeof AUTHORIZATION_NAMES)[keyof typeof AUTHORIZATION_NAMES]
  | 'owner_suspended'
  | 'no-cookie'
  | 'unexpected'
  | 'invalid-request'
  | 'request-closed'
  | 'signed-in-again'
  | 'another-person';

const textOf = (name: ErrorName, values?: Values) => ({
  heading: message(`errors.${name}-heading`, values),
  explanation: message(`errors.${name}-explanation`, values),
  advice: message(`errors.${name}-advice`, values),
});

/** The texts for HTTP statuses, if there is no text for the error itself. */
const NAMES = {
  400: 'not-understood',
  403: 'another-site',
  404: 'not-found',
  405: 'wrong-method',
  413: 'too-large',
  429: 'busy',
  503: 'store-away',
} as const;

/** HTTP statuses for which the page has no link to the profile, because the user can only go back or wait. */
const WITHOUT_LINK = [400, 413, 503];

function textOfStatus(status: number): ErrorText {
  if (!Object.hasOwn(NAMES, status)) return textOf('unexpected');
  const text = textOf(NAMES[status as keyof typeof NAMES]);
  return WITHOUT_LINK.includes(status) ? text : { ...text, links: [PROFILE] };
}

/** The texts for authorization requests that are refused without a redirect to the client, by error code. */
const AUTHORIZATION_NAMES = {
  invalid_client: 'unknown-app',
  account_busy: 'app-busy',
  slow_down: 'too-many-sign-ins',
  invalid_redirect_uri: 'return-address',
} as const;

export type ErrorPage = ReturnType<typeof createErrorPage>;

/** The form fields that the error page repeats. None of them may contain a secret. */
const TYPED = ['name', 'redirect_uris'];

export function createErrorPage(host: { readonly render: Render }) {
  const draw = (ctx: Context, status: number, { links = [], typed = [], app, ...text }: ErrorText): Promise<void> => {
    ctx.status = status;
    const { requestId } = ctx.state;
    return host.render(ctx, 'error', { ...text, links, typed, app, requestId });
  };

  /** Answers a request for a used or expired interaction. @param restart the URL that repeats the authorization */
  const requestIsOver = (ctx: Context, restart?: string): Promise<void> =>
    draw(ctx, 410, {
      ...textOf('request-closed', { canContinue: String(restart !== undefined) }),
      links: restart ? [{ href: restart, label: message('errors.continue') }, PROFILE] : [PROFILE],
    });

  return {
    show(ctx: Context, status: number): Promise<void> {
      if (status === 403 && !isCrossSite(ctx)) return draw(ctx, status, textOf('no-cookie'));
      return draw(ctx, status, textOfStatus(status));
    },

    say: draw,

    async showAuthorizationError(ctx: Context, refusal: AuthorizationRefusal): Promise<void> {
      const { code, description, isGone, restart, closed, app } = refusal;
      if (isGone) return requestIsOver(ctx, restart);
      const { status } = ctx;
      if (closed) {
        const links = [{ href: closed.back, label: message('errors.back-to-app') }];
        return draw(ctx, status, { ...textOf('owner_suspended'), links, app });
      }
      if (Object.hasOwn(AUTHORIZATION_NAMES, code)) {
        const text = textOf(AUTHORIZATION_NAMES[code as keyof typeof AUTHORIZATION_NAMES]);
        return draw(ctx, status, { ...text, app, ...(code === 'account_busy' && { links: [PROFILE] }) });
      }
      if (status >= 500) return draw(ctx, status, textOfStatus(status));
      return draw(ctx, status, { ...textOf('invalid-request', { reason: description ?? code }), app });
    },

    requestIsOver,

    accountIsBusy: (ctx: Context) => draw(ctx, 429, { ...textOfStatus(429), typed: typedIn(ctx) }),

    /**
     * Answers a form that was rendered for another account, or in an earlier session of this account.
     *
     * @param now the signed-in user; `isTheirs` is true if the form was rendered for the same account
     */
    formIsStale(ctx: Context, now: { name: string; isTheirs: boolean; href: string }): Promise<void> {
      const { name, isTheirs, href } = now;
      const typed = typedIn(ctx);
      if (isTheirs) {
        const links = [{ href, label: message('errors.open-again') }];
        return draw(ctx, 409, { ...textOf('signed-in-again'), links, typed });
      }
      const links = [
        { href, label: message('common.continue') },
        { href: '/logout', label: message('sign-out.title') },
      ];
      return draw(ctx, 409, { ...textOf('another-person', { name }), links, typed });
    },
  };
}

const typedIn = (ctx: Context): ErrorView['typed'] =>
  TYPED.map((field) => ({ label: message(`errors.typed-${field}`), values: formOf(ctx).getAll(field) })).filter(
    ({ values }) => values.length > 0,
  );

/** True if `Sec-Fetch-Site` or `Origin` says that another site sent the request. */
function isCrossSite(ctx: Context): boolean {
  const site = ctx.get('sec-fetch-site');
  const origin = ctx.get('origin');
  const ours = `${ctx.protocol}://${ctx.host}`;
  return (site !== '' && site !== 'same-origin') || (origin !== '' && origin !== ours);
}
