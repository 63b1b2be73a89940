/** Security headers, which limit what browsers let the pages do. */
import type { Context, Middleware, Next } from 'koa';
import helmet from 'koa-helmet';

const TWO_YEARS_SECONDS = 2 * 365 * 86_400;

/** Pages load only from this origin, run no inline scripts and cannot be framed. */
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
  const ownFormHeaders = pageWith({ ...PAGE_POLICY, 'form-action': ["'self'"] });
  // A client that opens an authorization page in a popup window needs `window.opener` afterwards. Send `unsafe-none`
  // explicitly, because it must replace the header that `page` has set.
  const clientFormHeaders = pageWith(PAGE_POLICY, {
    crossOriginOpenerPolicy: { policy: 'unsafe-none' },
  });
  const noStore = (ctx: Context): void => {
    ctx.set('Cache-Control', 'no-store');
  };
  return {
    /** Sets the headers for pages whose forms never lead to another origin. */
    page(ctx: Context, next: Next) {
      noStore(ctx);
      return ownFormHeaders(ctx, next);
    },
    /**
     * Sets the headers for pages whose form can lead to a client. Chromium applies `form-action` to every redirect
     * after the post, and the redirects of the client's own pages cannot be listed.
     */
    pageToClient(ctx: Context, next: Next) {
      noStore(ctx);
      return clientFormHeaders(ctx, next);
    },
    /**
     * Headers for JSON, unless an answer sets its own. They do not use helmet, which takes longer than a whole answer.
     */
    data: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
      'Referrer-Policy': 'same-origin',
      ...(isSecure && { 'Strict-Transport-Security': `max-age=${TWO_YEARS_SECONDS}` }),
    } as Readonly<Record<string, string>>,
  };
}
