/** Unsigned cookies of our own pages, for the whole origin. */
import type { Context } from 'koa';
import { cookieAttributes, cookieName } from '../base/cookies.ts';

/** @param name without any prefix. */
export function ownCookie(issuer: string, name: string) {
  const fullName = cookieName(issuer, name);
  const options = { ...cookieAttributes(issuer), path: '/', signed: false, overwrite: true };
  return {
    get: (ctx: Context): string | undefined => ctx.cookies.get(fullName, { signed: false }),

    /** @param seconds until the browser ends, where there are none. */
    set(ctx: Context, value: string, seconds?: number): void {
      const lifetime = seconds === undefined ? {} : { maxAge: seconds * 1000 };
      ctx.cookies.set(fullName, value, { ...options, ...lifetime });
    },

    clear: (ctx: Context): void => void ctx.cookies.set(fullName, null, options),
  };
}
