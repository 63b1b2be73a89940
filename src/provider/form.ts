/** Reads the form bodies of our own routes, and limits their size and their number of chunks. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { requestState } from '../base/request-state.ts';
import { cut, withoutSecrets } from '../clients/storable-text.ts';
import { OAuthError } from './oauth-error.ts';

/** This is far more than any request of a client needs. */
const MAX_BYTES = 56 * 1024;
/** A user may tick thousands of warehouses on a consent page, and each of them takes 26 bytes. */
const MAX_PAGE_BYTES = 256 * 1024;
/** Each chunk, however small, costs an event. A normal body of the largest size has about 180 chunks. */
const MAX_CHUNKS = 1_000;
export const CONTENT_TYPE = 'application/x-www-form-urlencoded';

const forms = requestState<URLSearchParams>('readForm');

export const formOf = forms.get;
/** Returns the form of the request; undefined if no step has read a form. */
export const findForm = forms.find;

/** Route step. @throws OAuthError `invalid_request` for a wrong content type, or a body too large or incomplete */
export async function readForm<Result>(ctx: Context, next: () => Promise<Result>): Promise<Result> {
  forms.set(ctx, await formFrom(ctx, 413, MAX_PAGE_BYTES));
  return next();
}

/** No parameter of OAuth has a longer name. */
const MAX_SHOWN_NAME = 100;
const MAY_REPEAT = ['resource', 'audience'];

/**
 * Route step: like `readForm`, but refuses repeated parameters (RFC 6749 §3.2). Only `resource` (RFC 8707 §2) and
 * `audience` (RFC 8693 §2.1) may be repeated. They have no effect, as at the authorization endpoint.
 */
export async function readOAuthForm<Result>(ctx: Context, next: () => Promise<Result>): Promise<Result> {
  // RFC 6749 §5.2 knows no status 413: answer with 400.
  const form = await formFrom(ctx, 400, MAX_BYTES);
  const names = new Set<string>();
  for (const name of form.keys()) {
    if (names.has(name) && !MAY_REPEAT.includes(name)) {
      // A client may have sent a token as the name, and the text is logged.
      const shown = cut(withoutSecrets(name), MAX_SHOWN_NAME);
      throw new OAuthError(400, 'invalid_request', `${shown} must not be sent twice`);
    }
    names.add(name);
  }
  forms.set(ctx, form);
  return next();
}

async function formFrom(ctx: Context, tooLarge: 400 | 413, maxBytes: number): Promise<URLSearchParams> {
  const type = ctx.req.headers['content-type'];
  // Compare first, because nearly every client sends exactly this type. Without a body, `ctx.is` returns null.
  if (type && type !== CONTENT_TYPE && ctx.is(CONTENT_TYPE) === false) {
    throw new OAuthError(400, 'invalid_request', `the body must be ${CONTENT_TYPE}`);
  }
  const encoding = ctx.get('content-encoding');
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new OAuthError(400, 'invalid_request', 'the body must not have a Content-Encoding');
  }
  const { length = maxBytes } = ctx.request;
  const body = length > maxBytes ? 'too large' : await readBody(ctx.req, length);
  if (typeof body !== 'string') return new URLSearchParams(body.toString());
  const status = body === 'too large' ? tooLarge : 400;
  const why = body === 'too large' ? `the body is larger than ${maxBytes} bytes` : WHY_UNREAD[body];
  throw new OAuthError(status, 'invalid_request', why);
}

const WHY_UNREAD = {
  'too many chunks': `the body came in more than ${MAX_CHUNKS} chunks`,
  'not there': 'the body did not arrive',
} as const;

/**
 * Copies each chunk into one buffer and keeps no chunk, because even a chunk of one byte takes about 250 bytes. The
 * listener limits how long a body may take (host/listeners.ts).
 *
 * @param size length of the body in bytes, or its maximum if unknown
 */
function readBody(request: IncomingMessage, size: number): Promise<Buffer | 'too large' | keyof typeof WHY_UNREAD> {
  const body = Buffer.allocUnsafe(size);
  let length = 0;
  let chunks = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk: Buffer) => {
      chunks += 1;
      if (chunks > MAX_CHUNKS) resolve('too many chunks');
      else if (length + chunk.length > size) resolve('too large');
      else length += chunk.copy(body, length);
      // Disconnect: a client may continue to send after a refusal, and each chunk costs as much as before.
      if (chunks > 2 * MAX_CHUNKS) request.destroy();
    });
    request.on('end', () => resolve(body.subarray(0, length)));
    request.on('error', () => resolve('not there'));
    request.on('close', () => resolve('not there'));
  });
}
