/** Gives the response to a form a URL of its own, so that the Back button does not send the form again. */
import type { Context, Next } from 'koa';
import { seeOther, type Visitor } from '../page.ts';
import type { FormDrafts } from './form-drafts.ts';

/** The query parameter that identifies a stored response to a form. */
export const ANSWER = 'answer';
/** The response headers that are stored with the page. */
const HEADERS = ['content-security-policy', 'cross-origin-opener-policy', 'retry-after'];

/**
 * Stores responses to forms, and redirects the browser to them with GET. Otherwise the Back button would ask whether
 * to send the form again, because a browser does not keep a `no-store` response to a POST. A response that cannot be
 * stored is sent directly.
 */
export function submitResults(parts: {
  forms: FormDrafts;
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  /** Returns false if the visitor needs a stronger sign-in for this request. */
  isOpenTo(ctx: Context, visitor: Visitor): boolean;
}) {
  const { forms, signedInOf, isOpenTo } = parts;
  const accountOf = async (ctx: Context): Promise<string | undefined> =>
    ctx.state.accountId ?? (await signedInOf(ctx))?.account.id;

  return {
    /** Stores the response. This step must run after the step that checks the form token. */
    async keepResult(ctx: Context, next: Next): Promise<void> {
      await next();
      // A program has no Back button: send the response itself, not a redirect to the stored response.
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

    /** Shows the stored response, or the page itself if the response has expired. This step runs before the routes. */
    async showResult(ctx: Context, next: Next): Promise<void> {
      if (ctx.method !== 'GET' || ctx.query[ANSWER] === undefined) return next();
      const visitor = await signedInOf(ctx);
      const [, area] = ctx.path.split('/');
      // Check only pages of the profile. Other pages, such as the page of a failed sign-in, need no sign-in.
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
