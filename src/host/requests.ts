/** What is looked at of a request before anything else is, and how a log may name its address. */
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

/** Characters of a path that are logged; no route of ours is longer. */
const LONGEST_PATH = 200;

/** The pattern of the route that took the request; `unmatched` for a path that nobody has. */
export function routeOf(ctx: Context & { _matchedRoute?: string | RegExp }): string {
  return ctx.state.route ?? String(ctx._matchedRoute ?? 'unmatched');
}

/** Some put a code or a token into the path, where none belongs; nothing of ours there is so long. */
export function shownPath(ctx: Context): string {
  const { path } = ctx;
  if (path === routeOf(ctx)) return path;
  const short = path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path;
  return short.replace(SECRET_VALUE, '$1…').replace(LONG_SEGMENT, '$1…');
}

/** The prefixes of every secret value that is given out. In any case, and escaped: `gate%5f`. */
const SECRET_VALUE = /(gate(?:_|%5f)(?:at|mt|rt|ac|cs|key)(?:_|%5f))[^/]*/gi;
/** Values without a prefix, such as a code verifier, have at least 43 characters. */
const LONG_SEGMENT = /([^/]{8})[^/]{32,}/g;

/** Whoever stands before us may go by the second of two where Node gives us the first. */
const ONCE = new Set(['host', 'authorization']);

/** RFC 9112 §3.2, RFC 9110 §5.3: two of these are no request, whatever they say. */
export function refuseRepeatedHeaders(ctx: Context, next: Next): Promise<void> {
  const names = new Set<string>();
  for (const [place, text] of ctx.req.rawHeaders.entries()) {
    // Names and values by turns. Nearly all of them are ruled out by their length.
    if (place % 2 === 1 || (text.length !== 4 && text.length !== 13)) continue;
    const name = text.toLowerCase();
    if (!ONCE.has(name)) continue;
    if (names.has(name)) {
      ctx.status = 400;
      ctx.type = 'text/plain';
      ctx.body = `${text} must not be sent twice.\n`;
      return Promise.resolve();
    }
    names.add(name);
  }
  return next();
}
