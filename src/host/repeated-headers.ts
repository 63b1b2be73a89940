/** Headers that may stand in a request once, and of which two would be read in two ways. */
import type { Context, Next } from 'koa';

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
