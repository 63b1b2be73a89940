/** Finds the language in which a page is shown. On `/language`, users choose it. */
import type { Context } from 'koa';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import { requestState } from '../base/request-state.ts';
import { formOf } from '../provider/form.ts';
import { languages } from '../texts/texts.ts';
import { ANSWER } from './forms/submit-results.ts';
import { ownCookie } from './own-cookie.ts';
import { seeOther, type Visitor } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Route } from './routes.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly language: {
      /** The URL of the previous page, to which the user returns; undefined if it is unknown. */
      readonly drawnAt: string | undefined;
    };
  }
}

const PATH = '/language';
/** Lifetime of the cookie with the language that a visitor has chosen. */
const LIFETIME_SECONDS = 400 * 86_400;

const cookieOf = (issuer: string) => ownCookie(issuer, 'language');

/** The language that a client has requested for the pages of its authorization request. */
export const clientLanguage = requestState<string>('an interaction');

/** The language is that of the account, or else of the cookie, of the client's request, or of the browser. */
export function createLanguageOf(issuer: string) {
  const cookie = cookieOf(issuer);
  return (ctx: Context, visitor: Visitor | undefined): string => {
    const known = languages();
    const chosen = [visitor?.account.language, cookie.get(ctx), clientLanguage.find(ctx)].find(
      (language) => language !== undefined && known.includes(language),
    );
    return chosen ?? (ctx.acceptsLanguages([...known]) || 'en');
  };
}

/** Stores the chosen language in the account, and in a cookie for pages before a sign-in. */
export function languagePage(parts: {
  readonly kit: PageKit;
  readonly issuer: string;
  readonly accounts: Pick<AccountRegistry, 'setLanguage'>;
}): Route[] {
  const { kit, issuer, accounts } = parts;
  const cookie = cookieOf(issuer);

  function show(ctx: Context): Promise<void> {
    const from = URL.parse(ctx.get('referer'));
    const isOurs = from?.origin === new URL(issuer).origin && from.pathname !== PATH;
    // Return to the page itself instead of a stored response, which would still be in the old language.
    from?.searchParams.delete(ANSWER);
    return kit.render(ctx, 'language', { drawnAt: isOurs ? from.href : undefined });
  }

  async function choose(ctx: Context): Promise<void> {
    const form = formOf(ctx);
    const language = form.get('language') ?? '';
    if (!languages().includes(language)) return seeOther(ctx, PATH);
    const visitor = await kit.visitorOf(ctx);
    const isTheirs = visitor && kit.formSession(ctx, visitor) !== 'somebody else';
    if (isTheirs) {
      await accounts.setLanguage(visitor.account.id, language);
    }
    cookie.set(ctx, language, LIFETIME_SECONDS);
    const url = URL.parse(form.get('drawn_at') ?? '', issuer);
    // Redirect to the whole URL, because a path that begins with `//` could lead to another site.
    seeOther(ctx, url?.origin === new URL(issuer).origin ? url.href : '/profile');
  }

  return [get(PATH, show), post(PATH, ...kit.form, choose)];
}
