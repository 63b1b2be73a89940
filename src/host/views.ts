/** Draws the pages: koa-views over the EJS files of `views/`, which see their `page` and nothing else. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import type { Context } from 'koa';
import koaViews from 'koa-views';
import { foundVisitor, type Visitor } from '../pages/page.ts';
import { STRONGER } from '../pages/sign-in/demands.ts';
import type { Render } from '../pages/view-data.ts';
import { type Moment, momentOf } from '../pages/words/moment.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { assetUrls } from './assets.ts';
import type { FormTokens } from './form-token.ts';

const directory = fileURLToPath(new URL('../../views', import.meta.url));

const LOCALS = ['page', 'frame', 'assets', 'keepAliveUrl'];
/** `strict` makes a misspelled name an error. */
const OPTIONS = { cache: true, strict: true, destructuredLocals: LOCALS };

// All are compiled at the start: an upgrade in place replaces the files while this process still runs,
// and its pages do not fit the new ones.
for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.ejs')) continue;
  const filename = path.join(directory, name);
  ejs.cache.set(filename, ejs.compile(readFileSync(filename, 'utf8'), { ...OPTIONS, filename }));
}

// Used as middleware only: put on `app.context` instead, koa-views shares one variable between all
// requests, and a page can end in the answer to somebody else.
const middleware = koaViews(directory, { extension: 'ejs', engineSource: { ejs: renderTemplate } });

/** What every page shows beside its own: who is signed in, and the token of its forms. */
interface Frame {
  readonly person?: { readonly name: string; readonly email: string };
  /** They will soon need more than the password that they came in with. */
  readonly demand?: { readonly until: Moment; readonly href: string };
  /** Gives the browser a cookie where it has none, so only a page with a form reads it. */
  readonly formToken: string;
}

/** Draws one view; for contexts that never passed the middleware too, like those of the engine. */
export function createRender(parts: {
  formTokens: Pick<FormTokens, 'formToken'>;
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  demandOn?(
    ctx: Context,
    visitor: Visitor,
  ): Promise<{ readonly until: Date; readonly isOver: boolean } | undefined>;
}): Render {
  const { formTokens, visitorOf, demandOn } = parts;
  return async (ctx, name, page) => {
    // What went wrong on our side is told at once, without asking a store.
    const visitor = ctx.status >= 500 ? foundVisitor(ctx) : await visitorOf(ctx);
    const isAsked = visitor && ctx.status < 500 && ctx.path !== STRONGER;
    const demand = isAsked && (await demandOn?.(ctx, visitor).catch(() => undefined));
    const frame: Frame = {
      ...(visitor && { person: visitor.account }),
      // Afterwards the page itself says so, and what to do.
      ...(demand &&
        !demand.isOver && { demand: { until: momentOf(demand.until), href: STRONGER } }),
      get formToken() {
        return formTokens.formToken(ctx, visitor);
      },
    };
    await middleware(ctx, async () => {});
    await ctx.render(`${name}.ejs`, { page, frame });
  };
}

/**
 * Stands where koa-views would call its own adapter for EJS, which hands every local and all of
 * `ctx.state` to the compiler as options (`escapeFunction` among them: CVE-2022-29078). Here the
 * options are these, whatever the locals hold.
 */
function renderTemplate(
  file: string,
  { page, frame }: { page: unknown; frame: Frame },
): Promise<string> {
  const locals = { page, frame, assets: assetUrls, keepAliveUrl: ENDPOINT.refreshSession };
  return ejs.renderFile(file, locals, OPTIONS);
}
