/** Form bodies of our own routes: read once, bounded, each parameter at most once. */
import type { IncomingMessage } from 'node:http';
import type { Context, Next } from 'koa';
import { requestState } from '../base/request-state.ts';
import { OAuthError } from './oauth-error.ts';

/** Bytes. Much more than any of our forms. */
const LIMIT = 56 * 1024;
/** Each chunk costs an event, however small it is. A body of `LIMIT` bytes has about 40 of a packet. */
const MAX_CHUNKS = 1_000;
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

const MAY_REPEAT = ['resource', 'audience'];

/**
 * Route step: as readForm, and RFC 6749 §3.2: a parameter must not come twice. `resource`
 * (RFC 8707 §2) and `audience` (RFC 8693 §2.1) may, and mean nothing here, as at the authorization
 * endpoint.
 *
 * @throws OAuthError `invalid_request`.
 */
export async function readOAuthForm(ctx: Context, next: Next): Promise<void> {
  // RFC 6749 §5.2 knows no 413.
  const form = await formFrom(ctx, 400);
  const names = new Set<string>();
  for (const name of form.keys()) {
    if (names.has(name) && !MAY_REPEAT.includes(name)) {
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
  const { length = LIMIT } = ctx.request;
  const body = length > LIMIT ? 'too large' : await readBody(ctx.req, length);
  if (typeof body !== 'string') return new URLSearchParams(body.toString());
  const status = body === 'too large' ? tooLarge : 400;
  throw new OAuthError(status, 'invalid_request', WHY_UNREAD[body]);
}

const WHY_UNREAD = {
  'too large': `the body is larger than ${LIMIT} bytes`,
  'too many chunks': `the body came in more than ${MAX_CHUNKS} chunks`,
  'not there': 'the body did not arrive',
} as const;

/**
 * Copies each chunk into one buffer and keeps none: a chunk of one byte takes about 250. How long a
 * body may take says the listener (host/listeners.ts).
 *
 * @param size bytes that the body has, or may have.
 * @returns the body, or why there is none.
 */
function readBody(
  request: IncomingMessage,
  size: number,
): Promise<Buffer | keyof typeof WHY_UNREAD> {
  const body = Buffer.allocUnsafe(size);
  let length = 0;
  let chunks = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk: Buffer) => {
      chunks += 1;
      if (chunks > MAX_CHUNKS) resolve('too many chunks');
      else if (length + chunk.length > size) resolve('too large');
      else length += chunk.copy(body, length);
      // It goes on all the same, and each chunk costs as much as before.
      if (chunks > 2 * MAX_CHUNKS) request.destroy();
    });
    request.on('end', () => resolve(body.subarray(0, length)));
    request.on('error', () => resolve('not there'));
    request.on('close', () => resolve('not there'));
  });
}
