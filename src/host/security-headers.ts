/** The headers that tell a browser what our answers may and may not do. */
import type { Context, Middleware, Next } from 'koa';
import helmet from 'koa-helmet';

const TWO_YEARS_SECONDS = 2 * 365 * 86_400;

/** Pages load from here only, run no inline script and are in nobody's frame. */
const PAGE_POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'"],
  'img-src': ["'self'"],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'object-src': ["'none'"],
  'frame-ancestors': ["'none'"],
};

export function securityHeaders(issuer: string) {
  const isSecure = issuer.startsWith('https:');
  const pageWith = (
    directives: Record<string, readonly string[]>,
    options: { crossOriginOpenerPolicy?: { policy: 'unsafe-none' } } = {},
  ): Middleware =>
    helmet({
      ...options,
      contentSecurityPolicy: { useDefaults: false, directives },
      strictTransportSecurity: isSecure && { maxAge: TWO_YEARS_SECONDS, includeSubDomains: false },
      // `no-referrer` would make the browser send `Origin: null` with our own forms.
      referrerPolicy: { policy: 'same-origin' },
      crossOriginResourcePolicy: { policy: 'same-origin' },
      xFrameOptions: { action: 'deny' },
    });
  const ending = pageWith({ ...PAGE_POLICY, 'form-action': ["'self'"] });
  // A client that opens these in a popup window must find its opener again afterwards. Said, and
  // not left out: these headers replace those of `page`.
  const toClient = pageWith(PAGE_POLICY, { crossOriginOpenerPolicy: { policy: 'unsafe-none' } });
  const noStore = (ctx: Context): void => {
    ctx.set('Cache-Control', 'no-store');
  };
  return {
    /** For pages whose forms end here. */
    page(ctx: Context, next: Next) {
      noStore(ctx);
      return ending(ctx, next);
    },
    /**
     * For pages whose form can end at a client. Chromium holds `form-action` against every redirect
     * that follows the post, those of the client's own pages included, which nobody can list.
     */
    pageToClient(ctx: Context, next: Next) {
      noStore(ctx);
      return toClient(ctx, next);
    },
    // For JSON. Written out, for they stand before every token: helmet would take longer than the answer.
    data(ctx: Context, next: Next) {
      // What Koa would find out from each body anew.
      ctx.set('Content-Type', 'application/json; charset=utf-8');
      ctx.set('X-Content-Type-Options', 'nosniff');
      ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
      ctx.set('Referrer-Policy', 'same-origin');
      if (isSecure) ctx.set('Strict-Transport-Security', `max-age=${TWO_YEARS_SECONDS}`);
      return next();
    },
  };
}
