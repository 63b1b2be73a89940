/** `/errors` and `/errors/:code`: the short pages that `error_uri` points to. */
import type { Context } from 'koa';
import { errorReference, errorReferences, isDocumentedError } from './error-reference.ts';
import type { PageHost } from './page.ts';

export function errorReferencePage({ render }: Pick<PageHost, 'render'>) {
  return {
    async index(ctx: Context): Promise<void> {
      await render(ctx, 'error-reference-index', {
        title: 'Error reference',
        errors: errorReferences(),
      });
    },

    /** Leaves an unknown code to be Koa's 404. */
    async show(ctx: Context): Promise<void> {
      const code = String(ctx.params.code);
      if (isDocumentedError(code)) await render(ctx, 'error-reference', errorReference(code));
    },
  };
}
