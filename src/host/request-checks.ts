/** Checks each request before all other steps, and formats its path for the logs. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import type { Answer } from '../base/answer.ts';
import { languages } from '../texts/texts.ts';

/** Returns the answer that refuses the request; undefined if the request is acceptable. */
export type CheckRequest = (request: IncomingMessage) => Answer | undefined;

export const requireChecked = (check: CheckRequest): Middleware =>
  function checkRequest(ctx, next) {
    const refusal = check(ctx.req);
    if (!refusal) return next();
    ctx.status = refusal.status ?? 400;
    ctx.type = 'text/plain';
    ctx.body = refusal.body;
    return Promise.resolve();
  };

const refusalOf = (status: number, text: string): Answer => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8' },
  body: text,
});

/**
 * Accepts only requests for the issuer's host. Links, redirects and metadata contain this host, so a request with
 * another host, or for another service, is refused with 421.
 */
export function checkHost(issuer: string): CheckRequest {
  const { host, port, protocol } = new URL(issuer);
  // A client may name the default port of the scheme (RFC 9110 §4.2.3).
  const withPort = port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
  return ({ headers: { host: named } }) => {
    const lowered = named?.toLowerCase();
    if (lowered === host || lowered === withPort) return undefined;
    const text = `This service answers only at ${issuer}, but the request was for`;
    // RFC 9112 §3.2: a request without a Host is invalid.
    return refusalOf(named === undefined ? 400 : 421, `${text} ${shownHost(named)}.\n`);
  };
}

const MAX_HOST_LENGTH = 100;

/**
 * Returns the Host header for an error message: the reader can see whether a proxy has changed the header. Replaces
 * characters that control a terminal.
 */
export const shownHost = (named = 'no host'): string => named.replace(/[^\x21-\x7e]/g, '?').slice(0, MAX_HOST_LENGTH);

/** Parameters of OpenID Connect. oidc-provider refuses some of them, and would store the others. */
const OPENID_PARAMETERS = ['acr_values', 'claims', 'claims_locales', 'display', 'id_token_hint', 'max_age', 'nonce'];

/** The maximum length of an email address (RFC 5321 §4.5.3.1). */
const MAX_LOGIN_HINT_LENGTH = 320;

/**
 * Removes parameters that have no meaning in OAuth (RFC 6749 §3.1), because oidc-provider would refuse some. Reduces
 * `ui_locales`, which oidc-provider would store, to the language that the pages will have.
 */
export async function ignoreOpenIdParameters(ctx: Context, next: Next): Promise<void> {
  const isForeign = (name: string): boolean =>
    OPENID_PARAMETERS.includes(name) ||
    name === 'ui_locales' ||
    (name === 'login_hint' && String(ctx.query[name]).length > MAX_LOGIN_HINT_LENGTH);
  const { prompt } = ctx.query;
  // Turn `select_account` into `consent`: the consent page names the account, and offers to use another one.
  if (typeof prompt === 'string') {
    const prompts = prompt.split(' ').map((name) => (name === 'select_account' ? 'consent' : name));
    ctx.query = { ...ctx.query, prompt: prompts.join(' ') };
  }
  if (Object.keys(ctx.query).some(isForeign)) {
    const known = Object.entries(ctx.query).filter(([name]) => !isForeign(name));
    const language = firstLanguageIn(ctx.query.ui_locales);
    ctx.query = { ...Object.fromEntries(known), ...(language !== undefined && { ui_locales: language }) };
  }
  await next();
}

/** Returns the first language with texts: `de` for `de-AT en`. */
function firstLanguageIn(tags: string | string[] | undefined): string | undefined {
  const known = languages();
  const wanted = String(tags ?? '')
    .toLowerCase()
    .split(/[ ,]/);
  return wanted.map((tag) => tag.split('-')[0] ?? '').find((tag) => known.includes(tag));
}

/** No route of the service has a longer path. */
const MAX_LOGGED_PATH_LENGTH = 200;

/** Returns `unmatched` if no route matched. */
export function routeOf(ctx: Context & { _matchedRoute?: string | RegExp }): string {
  return ctx.state.route ?? String(ctx._matchedRoute ?? 'unmatched');
}

/** Shortens codes and tokens, which some callers put into the path. No segment of a valid path is so long. */
export function shownPath(ctx: Context): string {
  const { path } = ctx;
  if (path === routeOf(ctx)) return path;
  const short = path.length > MAX_LOGGED_PATH_LENGTH ? `${path.slice(0, MAX_LOGGED_PATH_LENGTH)}…` : path;
  return short.replace(SECRET_VALUE, '$1…').replace(LONG_SEGMENT, '$1…');
}

/** Values with the prefix of any secret of Gatehouse, in any letter case, also escaped (`gate%5f`). */
const SECRET_VALUE = /(gate(?:_|%5f)(?:at|mt|rt|ac|cs|key)(?:_|%5f))[^/]*/gi;
/** Values without a prefix, such as a code verifier, have at least 43 characters. */
const LONG_SEGMENT = /([^/]{8})[^/]{32,}/g;

/** If these headers are repeated, Node uses the first, but a proxy may have used the second. */
const UNIQUE_HEADERS = new Set(['host', 'authorization']);

/** Refuses repeated headers, even with equal values (RFC 9112 §3.2, RFC 9110 §5.3). */
export function checkRepeatedHeaders({ rawHeaders }: IncomingMessage): Answer | undefined {
  const names = new Set<string>();
  for (const [place, text] of rawHeaders.entries()) {
    // Names and values alternate. Check the length first, so that few names must be converted to lower case.
    if (place % 2 === 1 || (text.length !== 4 && text.length !== 13)) continue;
    const name = text.toLowerCase();
    if (!UNIQUE_HEADERS.has(name)) continue;
    if (names.has(name)) return refusalOf(400, `${text} must be sent only once.\n`);
    names.add(name);
  }
  return undefined;
}
