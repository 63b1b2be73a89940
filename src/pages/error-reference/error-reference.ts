/** `/errors` and `/errors/:code`: the short pages that `error_uri` points to. */
import type { Context } from 'koa';
import type { PageHost } from '../page.ts';
import { documentedErrors, errorReference, isDocumentedError } from './reference.ts';
import type { Lifetimes } from './text.ts';

export function errorReferencePage({
  host,
  lifetimes,
}: {
  readonly host: Pick<PageHost, 'render'>;
  readonly lifetimes: Lifetimes;
}) {
  return {
    async index(ctx: Context): Promise<void> {
      await host.render(ctx, 'error-reference-index', {
        title: 'Error reference',
        errors: documentedErrors.map((code) => errorReference(code, lifetimes)),
      });
    },

    /** Leaves an unknown code to be Koa's 404. */
    async show(ctx: Context): Promise<void> {
      const code = String(ctx.params.code);
      if (!isDocumentedError(code)) return;
      await host.render(ctx, 'error-reference', errorReference(code, lifetimes));
    },
  };
}
