/** Refuses requests from web pages, except from a public client's own pages (CORS). */
import type { Context, Next } from 'koa';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import type { Client } from '../clients/client.ts';
import { OAuthError } from './oauth-error.ts';

const PREFLIGHT_MAX_AGE_SECONDS = '3600';
const EXPOSED_HEADERS = 'WWW-Authenticate, Retry-After, X-Request-Id';

/**
 * True if pages of `origin` are the client's own. Browser clients are public, and their pages have the origins of their
 * redirect URIs. Excludes the origin `null`: sandboxed pages and redirect URIs with a private-use scheme have it.
 */
function isOriginOf(client: Client, origin: string): boolean {
  const isPage = client.kind === 'public' && origin !== 'null';
  return isPage && client.redirectUris.some((uri) => URL.parse(uri)?.origin === origin);
}

/**
 * Route step: lets any page read why its request was refused (CORS), so that an invalid token does not look like an
 * outage. `requireOwnPage` removes this permission if the client is not the page's own. Cookies are ignored by these
 * routes, so a refusal reveals only the result for the values that the page sent.
 */
export function allowPages(ctx: Context, next: NextStep): Promise<Answer> {
  const origin = ctx.get('origin');
  if (origin) ctx.vary('Origin');
  if (origin && origin !== 'null') {
    ctx.set('Access-Control-Allow-Origin', origin);
    ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
  }
  return next();
}

/**
 * True if a web page sent the request: browsers add headers that no page can change. Requests of pages are not counted
 * as failures of their network address, because any page that a user visits could send them.
 */
export const isFromPage = (ctx: Context): boolean =>
  ctx.get('origin') !== '' || !['', 'none'].includes(ctx.get('sec-fetch-site'));

/** @throws OAuthError `invalid_request` for a page that is not the client's own. */
export function requireOwnPage(client: Client | undefined, ctx: Context): void {
  const origin = ctx.get('origin');
  if (!isFromPage(ctx) || (client && isOriginOf(client, origin))) return;
  ctx.remove('Access-Control-Allow-Origin');
  ctx.remove('Access-Control-Expose-Headers');
  const page = origin ? `origin ${origin}` : 'the page that sent this';
  throw new OAuthError(400, 'invalid_request', `${page} is not one of this client's`);
}

/**
 * True if a user navigates to the address, or if the browser or program does not send Fetch Metadata. False for images,
 * frames and scripts of other sites, and for a prefetch (`Sec-Purpose`), whose visit may never happen.
 */
const isNavigation = (ctx: Context): boolean =>
  ['', 'document'].includes(ctx.get('sec-fetch-dest')) && !ctx.get('sec-purpose').includes('prefetch');

/** Route step for addresses where visits are stored or counted: answers 403 unless the request is a navigation. */
export function requireNavigation(ctx: Context, next: Next): Promise<void> {
  if (isNavigation(ctx)) return next();
  ctx.status = 403;
  ctx.type = 'text/plain';
  ctx.body =
    'This address must be opened in the browser window itself: not in a frame, and not by an ' +
    'image, a script or a prefetch.\n';
  return Promise.resolve();
}

/**
 * Like `requireNavigation`, but allows frames with `prompt=none`, which clients on the same site use. Such a frame gets
 * an immediate response; nothing is stored or counted.
 */
export function requireNavigationOrSilence(ctx: Context, next: Next): Promise<void> {
  const isSilent = ctx.get('sec-fetch-dest') === 'iframe' && ctx.query.prompt === 'none';
  return isSilent ? next() : requireNavigation(ctx, next);
}

/** Route step: answers a preflight, which has no credentials, so its client is unknown until the next request. */
export function answerPreflight(method: 'GET' | 'POST'): Step {
  return async function preflight(ctx, next) {
    const origin = ctx.get('origin');
    const isPreflight = origin && origin !== 'null' && ctx.get('access-control-request-method');
    if (!isPreflight) return next();
    const wanted = ctx.get('access-control-request-headers');
    const headers = {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': method,
      'Access-Control-Max-Age': PREFLIGHT_MAX_AGE_SECONDS,
      ...(wanted && { 'Access-Control-Allow-Headers': wanted }),
    };
    return { headers, body: undefined };
  };
}
