/** Providers that must ask who signs in next in this browser, and not let the last person in again. */
import type { Context } from 'koa';
import { ownCookie } from '../own-cookie.ts';

export type NextPerson = ReturnType<typeof createNextPerson>;

/** As long as a browser is known (known-devices.ts): the session at the provider may be as old. */
const LIFETIME_SECONDS = 180 * 86_400;

/**
 * The cookie names the providers, and no person. It is kept until each of them has asked: the next person
 * at a shared computer may come days later, and by another provider first.
 */
export function createNextPerson(issuer: string, providerIds: readonly string[]) {
  const cookie = ownCookie(issuer, 'ask_who');

  const idsIn = (ctx: Context): string[] => {
    const named = (cookie.get(ctx) ?? '').split('~');
    return providerIds.filter((id) => named.includes(id));
  };

  function keep(ctx: Context, ids: readonly string[]): void {
    if (ids.length > 0) cookie.set(ctx, ids.join('~'), LIFETIME_SECONDS);
    else cookie.clear(ctx);
  }

  return {
    /** Every provider asks, or this one only. */
    ask(ctx: Context, id?: string): void {
      const asked = id === undefined ? providerIds : [...idsIn(ctx), id];
      if (asked.length > 0) keep(ctx, [...new Set(asked)]);
    },
    isAsked: (ctx: Context, id: string): boolean => idsIn(ctx).includes(id),
    /** This provider has asked: its session belongs to the person who is here now. */
    wasAsked(ctx: Context, id: string): void {
      const asked = idsIn(ctx);
      if (asked.includes(id))
        keep(
          ctx,
          asked.filter((one) => one !== id),
        );
    },
  };
}
