/** Makes providers ask who signs in next, instead of using the session that the last user has at the provider. */
import type { Context } from 'koa';
import type { NetworkCheck } from '../../base/network-address.ts';
import { ownCookie } from '../own-cookie.ts';

export type NextPerson = ReturnType<typeof createNextPerson>;

/** The same as in known-devices.ts: a session at a provider can last that long. */
const LIFETIME_SECONDS = 180 * 86_400;

/**
 * The cookie contains ids of providers, but names no user. A provider stays listed until it has asked, because the next
 * user of a shared computer may come days later, and sign in with another provider first.
 */
export function createNextPerson(issuer: string, all: readonly string[], isShared: NetworkCheck) {
  const cookie = ownCookie(issuer, 'ask_who');

  const idsIn = (ctx: Context): string[] => {
    const named = (cookie.get(ctx) ?? '').split('~');
    return all.filter((id) => named.includes(id));
  };

  function keep(ctx: Context, ids: readonly string[]): void {
    if (ids.length > 0) cookie.set(ctx, ids.join('~'), LIFETIME_SECONDS);
    else cookie.clear(ctx);
  }

  return {
    /** Makes this provider ask who signs in next; without `id`, every provider. */
    ask(ctx: Context, id?: string): void {
      const asked = id === undefined ? all : [...idsIn(ctx), id];
      if (asked.length > 0) keep(ctx, [...new Set(asked)]);
    },
    /** Always true on a shared terminal, where sessions also end without a sign-out. */
    isAsked: (ctx: Context, id: string): boolean => isShared(ctx.ip) || idsIn(ctx).includes(id),
    /** Records that this provider has asked, so that its session is now the current user's. */
    wasAsked(ctx: Context, id: string): void {
      const asked = idsIn(ctx);
      const others = asked.filter((one) => one !== id);
      if (others.length < asked.length) keep(ctx, others);
    },
  };
}
