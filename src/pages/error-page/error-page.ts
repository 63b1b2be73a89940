/** The page for all errors: what happened, what to do, and a reference. */
import type { Context } from 'koa';
import { formOf } from '../../provider/form.ts';
import type { AuthorizationRefusal } from '../../provider/provider.ts';
import type { Render } from '../view-data.ts';
import { type NearMiss, nearMissIn } from './near-miss.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly error: ErrorView;
  }
}

interface ErrorView {
  readonly status: number;
  readonly heading: string;
  readonly explanation: string;
  readonly advice: string;
  /** The entered text of a form that was refused, so that it is not lost. */
  readonly typed: readonly { readonly label: string; readonly value: string }[];
  /** Present only if the signed-in user owns the client. */
  readonly nearMiss?: NearMiss;
  /** Where to continue; the first link is what most users want. */
  readonly links: readonly { readonly href: string; readonly label: string }[];
  readonly requestId: string;
}

export type ErrorText = Pick<ErrorView, 'heading' | 'explanation' | 'advice'> &
  Partial<Pick<ErrorView, 'links' | 'typed' | 'nearMiss'>>;

const PROFILE = { href: '/profile', label: 'Go to your profile' };

const ACCOUNT_BUSY: ErrorText = {
  heading: 'Too many requests at once',
  explanation:
    'We are still working on other requests of your account, so we did not start this one.',
  advice: 'Wait a few seconds, then go back and send it again.',
  links: [PROFILE],
};

/** Texts for statuses without a more specific text. */
const TEXTS: Readonly<Record<number, ErrorText>> = {
  400: {
    heading: 'This request cannot be understood',
    explanation: 'Something in the address or the form is not as it should be.',
    advice: 'Go back and try again. If an app sent you here, begin again in that app.',
  },
  403: {
    heading: 'This form could not be accepted',
    explanation: 'It was sent from another site.',
    advice: 'If you meant to do this, begin again on a page of this service.',
    links: [PROFILE],
  },
  404: {
    heading: 'There is nothing here',
    explanation: 'The address is mistyped, or what was here is gone.',
    advice: 'Check the address, or go on from your profile.',
    links: [PROFILE],
  },
  405: {
    heading: 'This address is not for visiting',
    explanation: 'It answers programs, not browsers.',
    advice: 'Go on from your profile.',
    links: [PROFILE],
  },
  413: {
    heading: 'That is too much at once',
    explanation: 'The form is larger than this service accepts.',
    advice: 'Go back and send less.',
  },
  429: ACCOUNT_BUSY,
  503: {
    heading: 'Please try again in a moment',
    explanation: 'This service cannot reach its storage right now. Nothing was lost.',
    advice: 'Wait a few seconds and reload the page.',
  },
};

/** The text for a form of ours that arrives without its cookie. */
const COOKIES: ErrorText = {
  heading: 'This form could not be accepted',
  explanation:
    'The cookie that belongs to it did not come along: your browser blocks or has deleted the ' +
    'cookies of this site, or the page is out of date.',
  advice: 'Allow cookies for this site. Then go back, reload the page and send the form again.',
};

const UNEXPECTED: ErrorText = {
  heading: 'Something went wrong on our side',
  explanation: 'The request could not be completed.',
  advice:
    'Try again. If it happens again, tell whoever runs this service, with the reference below.',
};

/** Texts for authorization requests that are refused without a redirect to the client. */
const AUTHORIZATION_TEXTS: Readonly<Record<string, ErrorText>> = {
  invalid_client: {
    heading: 'This app is not known here',
    explanation: 'The app that sent you here is not registered, or it was suspended.',
    advice: 'Tell whoever makes the app. Nothing was shared with it.',
  },
  account_busy: {
    ...ACCOUNT_BUSY,
    advice: 'Wait a few seconds and begin again in the app. Nothing was shared with it.',
  },
  slow_down: {
    heading: 'Too many sign-ins were begun',
    explanation: 'From your network address more were begun than are kept open at once.',
    advice: 'Wait a few minutes and reload the page. Nothing was shared with the app.',
  },
  invalid_redirect_uri: {
    heading: 'This app asked to send you to an unknown address',
    explanation:
      'The address it wants you to return to is not one that was registered for it, so we stopped here.',
    advice: 'Tell whoever makes the app. Nothing was shared with it.',
  },
};

/** The text that the owner of the client sees. */
const OWN_REDIRECT_URI: ErrorText = {
  heading: 'This app asked to send you to an unknown address',
  explanation:
    'The app is yours, and this redirect URI is not registered for it. Here is what is different, which nobody else is told.',
  advice:
    'Register the URI that was sent, or send the one that is registered, character by character.',
};

/** Texts for a client that gets no new approvals at the moment. */
const CLOSED: Readonly<Record<NonNullable<AuthorizationRefusal['closed']>['why'], ErrorText>> = {
  owner_suspended: {
    heading: 'This app cannot ask you at the moment',
    explanation:
      'The account of whoever provides it is suspended here, so it gets no new approvals.',
    advice:
      'What you approved before is under “Connections”, where you can end it. Nothing was shared now.',
  },
  too_many_people: {
    heading: 'You cannot connect this app yet',
    explanation:
      'The operator of this service has not checked this app yet. Until then only a limited ' +
      'number of people can connect it, and that number is reached.',
    advice: 'If you need it, ask its maker to have it checked. Nothing was shared with the app.',
  },
};

export interface ErrorPage {
  /** Answers with the general page for an HTTP status. */
  show(ctx: Context, status: number): Promise<void>;
  /** Answers with a text that the calling page supplies. */
  say(ctx: Context, status: number, text: ErrorText): Promise<void>;
  showAuthorizationError(ctx: Context, refusal: AuthorizationRefusal): Promise<void>;
  /** Answers for a used or expired interaction. @param restart the URL that repeats the request. */
  requestIsOver(ctx: Context, restart?: string | undefined): Promise<void>;
  /** Answers a form if the account has too many pending requests; shows the typed text. */
  accountIsBusy(ctx: Context): Promise<void>;
  /**
   * Answers a form that was rendered for another account, or in another session of this account.
   *
   * @param now the name of the signed-in user, and where to continue.
   */
  formIsStale(
    ctx: Context,
    now: { readonly name: string; readonly isTheirs: boolean; readonly href: string },
  ): Promise<void>;
}

/** The fields, none of them secret, that are shown for a form that cannot be rendered again. */
const TYPED: Readonly<Record<string, string>> = { name: 'Name', redirect_uris: 'Redirect URI' };

export function createErrorPage(
  host: { readonly render: Render } & Parameters<typeof nearMissIn>[1],
): ErrorPage {
  const draw = (
    ctx: Context,
    status: number,
    { links = [], typed = [], ...text }: ErrorText,
  ): Promise<void> => {
    ctx.status = status;
    const { requestId } = ctx.state;
    return host.render(ctx, 'error', { status, ...text, links, typed, requestId });
  };

  const requestIsOver: ErrorPage['requestIsOver'] = (ctx, restart) =>
    draw(ctx, 410, {
      heading: 'This request is over',
      explanation: 'It was already answered, or it was left open for too long.',
      advice: restart
        ? 'If the app did not get its answer, continue: you will be asked again only if you must be.'
        : 'Go back to the app that sent you here and begin again.',
      links: restart ? [{ href: restart, label: 'Continue to the app' }, PROFILE] : [PROFILE],
    });

  return {
    show(ctx, status) {
      if (status === 403 && !isCrossSite(ctx)) return draw(ctx, status, COOKIES);
      return draw(ctx, status, TEXTS[status] ?? UNEXPECTED);
    },

    say: draw,

    async showAuthorizationError(ctx, { code, description, isGone, restart, closed }) {
      if (isGone) return requestIsOver(ctx, restart);
      const { status } = ctx;
      if (closed)
        return draw(ctx, status, {
          ...CLOSED[closed.why],
          links: [PROFILE, { href: closed.back, label: 'Back to the app' }],
        });
      const text = AUTHORIZATION_TEXTS[code];
      const nearMiss = code === 'invalid_redirect_uri' ? await nearMissIn(ctx, host) : undefined;
      if (nearMiss) {
        const links = [{ href: nearMiss.clientUrl, label: 'Go to your client' }];
        return draw(ctx, status, { ...OWN_REDIRECT_URI, nearMiss, links });
      }
      if (text) return draw(ctx, status, text);
      if (status >= 500) return draw(ctx, status, TEXTS[status] ?? UNEXPECTED);
      return draw(ctx, status, {
        heading: 'This app made a mistake',
        explanation: `The request it sent you here with is not complete: ${description ?? code}.`,
        advice: 'Tell whoever makes the app. Nothing was shared with it.',
      });
    },

    requestIsOver,

    accountIsBusy: (ctx) => draw(ctx, 429, { ...ACCOUNT_BUSY, typed: typedIn(ctx) }),

    formIsStale(ctx, { name, isTheirs, href }) {
      const typed = typedIn(ctx);
      if (isTheirs) {
        return draw(ctx, 409, {
          heading: 'You have signed in again',
          explanation: 'The page you sent this from was opened before that, so nothing was done.',
          advice: 'Open it again, and send it from there if you still mean it.',
          links: [{ href, label: 'Open it again' }],
          typed,
        });
      }
      return draw(ctx, 409, {
        heading: `You are now signed in as ${name}`,
        explanation: 'The page you sent this from was opened for somebody else: nothing was done.',
        advice: 'Go on as who you are now, or sign out and sign in with the other account.',
        links: [
          { href, label: 'Go on' },
          { href: '/logout', label: 'Sign out' },
        ],
        typed,
      });
    },
  };
}

const typedIn = (ctx: Context): ErrorView['typed'] =>
  [...formOf(ctx)].flatMap(([field, value]) => {
    const label = Object.hasOwn(TYPED, field) ? TYPED[field] : undefined;
    return label === undefined ? [] : [{ label, value }];
  });

/** True if `Sec-Fetch-Site` or `Origin` names another site. Koa's host is that of the issuer. */
function isCrossSite(ctx: Context): boolean {
  const site = ctx.get('sec-fetch-site');
  const origin = ctx.get('origin');
  const ours = `${ctx.protocol}://${ctx.host}`;
  return (site !== '' && site !== 'same-origin') || (origin !== '' && origin !== ours);
}
