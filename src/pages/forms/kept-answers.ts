/** Pages that answer a form: each gets an address of its own, to which Back leads without a question. */
import type { Context, Next } from 'koa';
import { seeOther, type Visitor } from '../page.ts';
import type { KeptForms } from './kept-forms.ts';

/** The parameter that names an answer. */
const ANSWER = 'answer';
/** What the answer says beside its page. */
const HEADERS = ['content-security-policy', 'cross-origin-opener-policy', 'retry-after'];

interface Answer {
  readonly path: string;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly html: string;
}

/**
 * A browser keeps no page that must not be stored, and would have to send the form again to come
 * back to one that answered it: "Confirm Form Resubmission". So the answer is kept here, and the
 * browser sent to it with GET. One that cannot be kept is answered as it is.
 */
export function keptAnswers(parts: {
  forms: KeptForms;
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  holdsBack(ctx: Context, visitor: Visitor): Promise<boolean>;
}) {
  const { forms, visitorOf, holdsBack } = parts;
  /** For whom the page was drawn, as its steps found. */
  const accountOf = async (ctx: Context): Promise<string | undefined> =>
    ctx.state.accountId ?? (await visitorOf(ctx))?.account.id;

  return {
    /** Route step, after those that found the form to be ours. */
    async keepAnswer(ctx: Context, next: Next): Promise<void> {
      await next();
      // A program has no Back button, and wants to see what it was answered.
      if (ctx.get('sec-fetch-mode') !== 'navigate') return;
      const { status, body, path } = ctx;
      if (typeof body !== 'string' || !ctx.response.is('html')) return;
      if (status >= 500 || (status >= 300 && status < 400)) return;
      const sent = HEADERS.filter((name) => ctx.res.hasHeader(name));
      const headers = sent.map((name) => [name, ctx.response.get(name)] as const);
      const answer: Answer = { path, status, headers, html: body };
      const name = await forms.keep(ctx, answer, await accountOf(ctx));
      if (name === undefined) return;
      ctx.remove('Retry-After');
      const query = new URLSearchParams(ctx.querystring);
      query.set(ANSWER, name);
      seeOther(ctx, `${path}?${query}`);
    },

    /** Before the routes: shows the answer that the address names, or else the page it was about. */
    async showAnswer(ctx: Context, next: Next): Promise<void> {
      if (ctx.method !== 'GET' || ctx.query[ANSWER] === undefined) return next();
      const visitor = await visitorOf(ctx);
      const [, area] = ctx.path.split('/');
      // Other pages need no sign-in, such as the one that says why a sign-in failed.
      if (visitor && area === 'profile' && (await holdsBack(ctx, visitor))) return next();
      const found = await forms.look<Answer>(ctx, ctx.query[ANSWER], visitor?.account.id);
      if (found?.path !== ctx.path) return next();
      for (const [name, value] of found.headers) ctx.set(name, value);
      ctx.status = found.status;
      ctx.type = 'html';
      ctx.body = found.html;
    },
  };
}
