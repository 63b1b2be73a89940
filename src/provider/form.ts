/** Form bodies of our own routes: read once, bounded, each parameter at most once. */
import type { Context, Next } from 'koa';
import getRawBody from 'raw-body';
import { OAuthError } from './oauth-error.ts';

/** Bytes. Much more than any of our forms; the engine's own limit for the token endpoint. */
const LIMIT = 56 * 1024;
const CONTENT_TYPE = 'application/x-www-form-urlencoded';

const forms = new WeakMap<Context, URLSearchParams>();

/** The form that `readForm` or `readOAuthForm` read. */
export function formOf(ctx: Context): URLSearchParams {
  const form = forms.get(ctx);
  if (!form) throw new TypeError('a form must be read before');
  return form;
}

/**
 * Route step: reads a form-encoded body.
 *
 * @throws OAuthError `invalid_request` for another content type, and for a body that is too large
 *   or does not arrive.
 */
export async function readForm(ctx: Context, next: Next): Promise<void> {
  const length = ctx.request.length;
  // Null without a body, whatever its type would be.
  if (ctx.get('content-type') && ctx.is(CONTENT_TYPE) === false) {
    throw new OAuthError(400, 'invalid_request', `the body must be ${CONTENT_TYPE}`);
  }
  const options = { limit: LIMIT, encoding: 'utf-8', ...(length !== undefined && { length }) };
  const body = await getRawBody(ctx.req, options).catch((cause: Error & { status?: number }) => {
    const isTooLarge = cause.status === 413;
    const text = isTooLarge ? `the body is larger than ${LIMIT} bytes` : 'the body did not arrive';
    throw new OAuthError(isTooLarge ? 413 : 400, 'invalid_request', text);
  });
  forms.set(ctx, new URLSearchParams(body));
  await next();
}

/**
 * Route step: as readForm, and RFC 6749 §3.2: a parameter must not come twice.
 *
 * @throws OAuthError `invalid_request`.
 */
export function readOAuthForm(ctx: Context, next: Next): Promise<void> {
  return readForm(ctx, async () => {
    const names = [...formOf(ctx).keys()];
    const repeated = names.find((name, index) => names.indexOf(name) !== index);
    if (repeated !== undefined) {
      throw new OAuthError(400, 'invalid_request', `${repeated} must not be sent twice`);
    }
    await next();
  });
}
