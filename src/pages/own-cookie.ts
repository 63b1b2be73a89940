/** Unsigned cookies that our pages set, with path `/`. */
import type { Context } from 'koa';
import { cookieAttributes, cookieName } from '../base/cookies.ts';

/** @param name without the prefix that `cookieName` adds. */
export function ownCookie(issuer: string, name: string) {
  const fullName = cookieName(issuer, name);
  const options = { ...cookieAttributes(issuer), path: '/', signed: false, overwrite: true };
  return {
    get: (ctx: Context): string | undefined => ctx.cookies.get(fullName, { signed: false }),

    /** @param seconds the lifetime; without it, the cookie ends with the browser session. */
    set(ctx: Context, value: string, seconds?: number): void {
      const lifetime = seconds === undefined ? {} : { maxAge: seconds * 1000 };
      ctx.cookies.set(fullName, value, { ...options, ...lifetime });
    },

    clear: (ctx: Context): void => void ctx.cookies.set(fullName, null, options),
  };
}
