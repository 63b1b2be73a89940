/** The address of a request as a log may hold it. */
import type { Context } from 'koa';

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
