/** Form bodies of our own routes: read once, bounded, each parameter at most once. */
import type { Context, Next } from 'koa';
import getRawBody from 'raw-body';
import { requestState } from '../request-state.ts';
import { OAuthError } from './oauth-error.ts';

/** Bytes. Much more than any of our forms. */
const LIMIT = 56 * 1024;
export const CONTENT_TYPE = 'application/x-www-form-urlencoded';

const forms = requestState<URLSearchParams>('readForm');

/** The form that `readForm` or `readOAuthForm` read. */
export const formOf = forms.get;
/** Undefined where neither did, or could. */
export const findForm = forms.find;

/**
 * Route step: reads a form-encoded body.
 *
 * @throws OAuthError `invalid_request` for another content type, and for a body that is too large
 *   or does not arrive.
 */
export async function readForm(ctx: Context, next: Next): Promise<void> {
  forms.set(ctx, await formFrom(ctx, 413));
  return next();
}

/**
 * Route step: as readForm, and RFC 6749 §3.2: a parameter must not come twice.
 *
 * @throws OAuthError `invalid_request`.
 */
export async function readOAuthForm(ctx: Context, next: Next): Promise<void> {
  // RFC 6749 §5.2 knows no 413.
  const form = await formFrom(ctx, 400);
  const names = new Set<string>();
  for (const name of form.keys()) {
    if (names.has(name)) {
      throw new OAuthError(400, 'invalid_request', `${name} must not be sent twice`);
    }
    names.add(name);
  }
  forms.set(ctx, form);
  return next();
}

/** @param tooLarge the status for a body that is. */
async function formFrom(ctx: Context, tooLarge: 400 | 413): Promise<URLSearchParams> {
  const type = ctx.req.headers['content-type'];
  // Compared first, because nearly everybody sends just this. `is` answers null without a body,
  // whatever its type would be.
  if (type && type !== CONTENT_TYPE && ctx.is(CONTENT_TYPE) === false) {
    throw new OAuthError(400, 'invalid_request', `the body must be ${CONTENT_TYPE}`);
  }
  const { length } = ctx.request;
  const options = { limit: LIMIT, ...(length !== undefined && { length }) };
  try {
    return new URLSearchParams((await getRawBody(ctx.req, options)).toString());
  } catch (cause) {
    const isTooLarge = (cause as { status?: number }).status === 413;
    const text = isTooLarge ? `the body is larger than ${LIMIT} bytes` : 'the body did not arrive';
    throw new OAuthError(isTooLarge ? tooLarge : 400, 'invalid_request', text);
  }
}
