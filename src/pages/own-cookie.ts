/** Unsigned cookies of the pages, with path `/`. */
import type { Context } from 'koa';
import { cookieAttributes, cookieName } from '../base/cookies.ts';
import { isLongId } from '../base/random-id.ts';

/** @param name the name without the prefix that `cookieName` adds */
export function ownCookie(issuer: string, name: string) {
  const fullName = cookieName(issuer, name);
  const options = { ...cookieAttributes(issuer), path: '/', signed: false, overwrite: true };
  const get = (ctx: Context): string | undefined => ctx.cookies.get(fullName, { signed: false });
  return {
    get,

    /** Returns the random id in the cookie; undefined if the cookie has another value. */
    longId(ctx: Context): string | undefined {
      const value = get(ctx);
      return isLongId(value) ? value : undefined;
    },

    /** @param seconds the lifetime; by default, the browser deletes the cookie when it is closed */
    set(ctx: Context, value: string, seconds?: number): void {
      const lifetime = seconds === undefined ? {} : { maxAge: seconds * 1000 };
      ctx.cookies.set(fullName, value, { ...options, ...lifetime });
    },

    clear: (ctx: Context): void => void ctx.cookies.set(fullName, null, options),
  };
}

/** Deletes all cookies of the pages from the browser, except those in `kept`. */
export function clearOwnCookies(ctx: Context, issuer: string, kept: readonly string[]): void {
  for (const pair of ctx.get('cookie').split('; ')) {
    const [, name] = /^(?:__Host-)?gate_([a-z_]+)=/.exec(pair) ?? [];
    if (name !== undefined && !kept.includes(name)) ownCookie(issuer, name).clear(ctx);
  }
}
