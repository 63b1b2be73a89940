/** Draws the pages: koa-views over the EJS files of `views/`, which see their `page` and nothing else. */
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import type { Middleware } from 'koa';
import koaViews from 'koa-views';
import type { Render } from '../pages/view-data.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { assetUrls } from './assets.ts';

const directory = fileURLToPath(new URL('../../views', import.meta.url));

// Used as middleware only: put on `app.context` instead, koa-views shares one variable between all
// requests, and a page can end in the answer to somebody else.
const middleware = koaViews(directory, { extension: 'ejs', engineSource: { ejs: renderTemplate } });

/** Gives every context its `render`. */
export function viewMiddleware(): Middleware {
  return middleware;
}

/** Draws one view; for contexts that never passed the middleware too, like those of the engine. */
export const render: Render = async (ctx, name, page) => {
  await middleware(ctx, async () => {});
  await ctx.render(`${name}.ejs`, { page });
};

/**
 * Stands where koa-views would call its own adapter for EJS, which hands every local and all of
 * `ctx.state` to the compiler as options (`escapeFunction` among them: CVE-2022-29078). Here the
 * options are these, whatever the locals hold. `strict` makes a misspelled name an error.
 */
function renderTemplate(file: string, locals: { page: unknown }): Promise<string> {
  return ejs.renderFile(
    file,
    { page: locals.page, assets: assetUrls, keepAliveUrl: ENDPOINT.refreshSession },
    { cache: true, strict: true, destructuredLocals: ['page', 'assets', 'keepAliveUrl'] },
  );
}
