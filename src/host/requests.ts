/** Route steps that look at a request before anything else does. */
import type { Context, Middleware, Next } from 'koa';

/**
 * Answers only for the issuer's own host: links, redirects and metadata are built from it, so a
 * request that brings another one (or came to the wrong service) is refused with 421.
 */
export function requireIssuerHost(issuer: string): Middleware {
  const { host } = new URL(issuer);
  return function issuerHost(ctx, next) {
    const named = ctx.req.headers.host;
    if (named?.toLowerCase() !== host) {
      // RFC 9112 §3.2: without a Host it is no request at all.
      ctx.status = named === undefined ? 400 : 421;
      ctx.type = 'text/plain';
      ctx.body = `This service answers at ${issuer} only, and was asked as ${shownHost(named)}.\n`;
      return Promise.resolve();
    }
    return next();
  };
}

const LONGEST_HOST = 100;

/** Whoever reads it finds the proxy that changed it; what a terminal would obey is not shown. */
export const shownHost = (named = 'nobody'): string =>
  named.replace(/[^\x21-\x7e]/g, '?').slice(0, LONGEST_HOST);

/** What OpenID Connect added to the authorization request; the engine would keep the rest of it. */
const OPENID_PARAMETERS = [
  'acr_values',
  'claims',
  'claims_locales',
  'display',
  'id_token_hint',
  'max_age',
  'nonce',
  'ui_locales',
];

/** Characters of an email address (RFC 5321 §4.5.3.1). */
const LONGEST_HINT = 320;

/** RFC 6749 §3.1: parameters that mean nothing here are ignored; the engine would refuse these. */
export async function ignoreOpenIdParameters(ctx: Context, next: Next): Promise<void> {
  const isForeign = (name: string): boolean =>
    OPENID_PARAMETERS.includes(name) ||
    (name === 'login_hint' && String(ctx.query[name]).length > LONGEST_HINT);
  if (Object.keys(ctx.query).some(isForeign)) {
    const known = Object.entries(ctx.query).filter(([name]) => !isForeign(name));
    ctx.query = Object.fromEntries(known);
  }
  await next();
}
