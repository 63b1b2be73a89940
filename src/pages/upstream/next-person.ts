/** Makes providers ask who signs in next, instead of using the last user's session there. */
import type { Context } from 'koa';
import { ownCookie } from '../own-cookie.ts';

export type NextPerson = ReturnType<typeof createNextPerson>;

/** As long as in known-devices.ts: a session at the provider can last that long. */
const LIFETIME_SECONDS = 180 * 86_400;

/**
 * The cookie contains ids of providers, and no user. A provider stays listed until it has asked:
 * the next user of a shared computer may come days later, and sign in with another provider first.
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
    /** Marks this provider to ask who signs in next; without `id`, every provider. */
    ask(ctx: Context, id?: string): void {
      const asked = id === undefined ? providerIds : [...idsIn(ctx), id];
      if (asked.length > 0) keep(ctx, [...new Set(asked)]);
    },
    isAsked: (ctx: Context, id: string): boolean => idsIn(ctx).includes(id),
    /** Removes the mark: the provider has asked, so its session belongs to the current user. */
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
