/** Cookies of our own pages: for the whole origin, and for no script. */
import type { Context } from 'koa';

/** @param name without the prefix, which is `__Host-` where the issuer is https. */
export function ownCookie(issuer: string, name: string) {
  const secure = issuer.startsWith('https:');
  const cookieName = `${secure ? '__Host-' : ''}gate_${name}`;
  // Lax: it comes along with a link in a mail, and from a client, and with no form of another site.
  const rules = { httpOnly: true, sameSite: 'lax', secure, path: '/' } as const;
  const options = { ...rules, signed: false, overwrite: true };
  return {
    get: (ctx: Context): string | undefined => ctx.cookies.get(cookieName, { signed: false }),

    /** @param seconds until the browser ends, where there are none. */
    set(ctx: Context, value: string, seconds?: number): void {
      const lifetime = seconds === undefined ? {} : { maxAge: seconds * 1000 };
      ctx.cookies.set(cookieName, value, { ...options, ...lifetime });
    },

    clear: (ctx: Context): void => void ctx.cookies.set(cookieName, null, options),
  };
}
