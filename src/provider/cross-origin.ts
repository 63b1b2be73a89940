/** Which web pages may read our answers (CORS): those of public clients, at their redirect URIs. */
import type { Context, Middleware, Next } from 'koa';
import type { Client } from '../clients/client.ts';
import { authenticatedClient } from './client-authentication.ts';
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
 * Route step: a page may read why its request was refused, until the request turns out to be about a
 * client that is not its own (`requireOwnPage`). Without it a dead token looks like an outage. No
 * cookie counts here, so a refusal tells a page nothing but what became of the values it sent.
 */
export function allowPages(ctx: Context, next: Next): Promise<void> {
  const origin = ctx.get('origin');
  if (origin) ctx.vary('Origin');
  if (origin && origin !== 'null') {
    ctx.set('Access-Control-Allow-Origin', origin);
    ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
  }
  return next();
}

/**
 * A request without an `Origin` is no page's.
 *
 * @throws OAuthError `invalid_request` for the page of anybody but the client: what it cannot read
 *   the answer of, it shall not do either.
 */
export function requireOwnPage(client: Client | undefined, ctx: Context): void {
  const origin = ctx.get('origin');
  if (!origin || (client && isOriginOf(client, origin))) return;
  ctx.remove('Access-Control-Allow-Origin');
  ctx.remove('Access-Control-Expose-Headers');
  throw new OAuthError(400, 'invalid_request', `origin ${origin} is not one of this client's`);
}

/** Route step after `requireClient`: `requireOwnPage` for the client it found. */
export function refuseForeignPage(ctx: Context, next: Next): Promise<void> {
  requireOwnPage(authenticatedClient(ctx), ctx);
  return next();
}

/**
 * Route step: answers a preflight. It comes without credentials, so nobody knows yet whose page
 * asks; the request that follows is held against its client.
 */
export function answerPreflight(method: 'GET' | 'POST'): Middleware {
  return async function preflight(ctx, next) {
    const origin = ctx.get('origin');
    const isPreflight = origin && origin !== 'null' && ctx.get('access-control-request-method');
    if (!isPreflight) return next();
    ctx.status = 204;
    ctx.vary('Origin');
    ctx.set('Access-Control-Allow-Origin', origin);
    ctx.set('Access-Control-Allow-Methods', method);
    ctx.set('Access-Control-Max-Age', PREFLIGHT_AGE);
    const headers = ctx.get('access-control-request-headers');
    if (headers) ctx.set('Access-Control-Allow-Headers', headers);
  };
}
