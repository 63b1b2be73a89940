/** Gives every page that responds to a form its own URL, so that Back works without resending. */
import type { Context, Next } from 'koa';
import { seeOther, type Visitor } from '../page.ts';
import type { FormDrafts } from './form-drafts.ts';

/** The query parameter that names a kept response. */
export const ANSWER = 'answer';
/** The response headers that are kept with the page. */
const HEADERS = ['content-security-policy', 'cross-origin-opener-policy', 'retry-after'];

/**
 * A browser does not store a `no-store` response to a form, so the Back button would ask whether to send the form again
 * ("Confirm Form Resubmission"). Therefore the response is kept here, and the browser is redirected to it with GET. A
 * response that cannot be kept is sent directly.
 */
export function submitResults(parts: {
  forms: FormDrafts;
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  /** False if the visitor needs a stronger sign-in for this request. */
  isOpenTo(ctx: Context, visitor: Visitor): boolean;
}) {
  const { forms, signedInOf, isOpenTo } = parts;
  /** The account that the steps identified, or else the signed-in one: only this account can read the response. */
  const accountOf = async (ctx: Context): Promise<string | undefined> =>
    ctx.state.accountId ?? (await signedInOf(ctx))?.account.id;

  return {
    /** Route step: keeps the response. Must run after the step that checks the form token. */
    async keepResult(ctx: Context, next: Next): Promise<void> {
      await next();
      // Keep nothing for a program: it has no Back button, and needs the response itself.
      if (ctx.get('sec-fetch-mode') !== 'navigate') return;
      const { status, body, path } = ctx;
      if (typeof body !== 'string' || !ctx.response.is('html')) return;
      if (status >= 500 || (status >= 300 && status < 400)) return;
      const sent = HEADERS.filter((name) => ctx.res.hasHeader(name));
      const headers = sent.map((name) => [name, ctx.response.get(name)] as const);
      const answer = { path, status, headers, html: body };
      const name = await forms.save(ctx, ANSWER, answer, await accountOf(ctx));
      if (name === undefined) return;
      ctx.remove('Retry-After');
      const query = new URLSearchParams(ctx.querystring);
      query.set(ANSWER, name);
      seeOther(ctx, `${path}?${query}`);
    },

    /** Runs before the routes: shows the kept response or, if it has expired, the page itself. */
    async showResult(ctx: Context, next: Next): Promise<void> {
      if (ctx.method !== 'GET' || ctx.query[ANSWER] === undefined) return next();
      const visitor = await signedInOf(ctx);
      const [, area] = ctx.path.split('/');
      // Check only pages of the profile: other pages, such as that of a failed sign-in, need no sign-in.
      if (visitor && area === 'profile' && !isOpenTo(ctx, visitor)) return next();
      const found = await forms.find(ctx, ANSWER, ctx.query[ANSWER], visitor?.account.id);
      if (found?.path !== ctx.path) return next();
      for (const [name, value] of found.headers) ctx.set(name, value);
      ctx.status = found.status;
      ctx.type = 'html';
      ctx.body = found.html;
    },
  };
}
