/** Which web pages may read our answers (CORS): those of public clients, at their redirect URIs. */
import type { Context, Next } from 'koa';
import type { Client } from '../clients/client.ts';
import { OAuthError } from './oauth-error.ts';

/** Seconds for which a browser need not ask again. */
const PREFLIGHT_AGE = '3600';
/** What a page needs of an answer beside its body. */
const EXPOSED_HEADERS = 'WWW-Authenticate, Retry-After, X-Request-Id';

/**
 * Whether pages of `origin` are the client's own. Browser clients are public ones, and their pages
 * live where their redirect URIs do. `null` is the origin of every sandboxed page, and of a native
 * client's private-use scheme.
 */
export function isOriginOf(client: Client, origin: string): boolean {
  const isPage = client.kind === 'public' && origin !== 'null';
  return isPage && client.redirectUris.some((uri) => URL.parse(uri)?.origin === origin);
}

/**
 * Lets the client's own pages read the answer. A request without an `Origin` is no page's.
 *
 * @throws OAuthError `invalid_request` for the page of anybody else: what it could not read the
 *   answer of, it shall not do either. The token endpoint refuses in the same way.
 */
export function allowPageOf(client: Client | undefined, ctx: Context): void {
  const origin = ctx.get('origin');
  if (!origin) return;
  ctx.vary('Origin');
  if (!client || !isOriginOf(client, origin)) {
    throw new OAuthError(400, 'invalid_request', `origin ${origin} is not one of this client's`);
  }
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/**
 * Route step: answers a preflight. It comes without credentials, so nobody knows yet whose page
 * asks; the request that follows is held against its client.
 */
export async function answerPreflight(ctx: Context, next: Next): Promise<void> {
  const origin = ctx.get('origin');
  const isPreflight = origin && origin !== 'null' && ctx.get('access-control-request-method');
  if (!isPreflight) return next();
  ctx.status = 204;
  ctx.vary('Origin');
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Allow-Methods', 'POST');
  ctx.set('Access-Control-Max-Age', PREFLIGHT_AGE);
  const headers = ctx.get('access-control-request-headers');
  if (headers) ctx.set('Access-Control-Allow-Headers', headers);
}
