/** Makes providers ask who signs in next, because the previous user may still have a session at the provider. */
import type { Context } from 'koa';
import type { NetworkCheck } from '../../base/network-address.ts';
import { ownCookie } from '../own-cookie.ts';

export type NextPerson = ReturnType<typeof createNextPerson>;

/** Lifetime of the cookie: as long as the session of a user at a provider may last. */
const LIFETIME_SECONDS = 180 * 86_400;

/**
 * The cookie contains the ids of the providers that must ask who signs in, and names no user. An id stays in the cookie
 * until its provider has asked, because the next user may come days later, or sign in with another provider first.
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
    /** Makes the provider ask who the user is at the next sign-in. Without `id`, makes all providers ask. */
    ask(ctx: Context, id?: string): void {
      const asked = id === undefined ? all : [...idsIn(ctx), id];
      if (asked.length > 0) keep(ctx, [...new Set(asked)]);
    },
    /** Returns true for every shared terminal, because a session on such a terminal ends even without a sign-out. */
    isAsked: (ctx: Context, id: string): boolean => isShared(ctx.ip) || idsIn(ctx).includes(id),
    /** Call this after the provider has asked who signs in: the provider's session is now that of the current user. */
    wasAsked(ctx: Context, id: string): void {
      const asked = idsIn(ctx);
      const others = asked.filter((one) => one !== id);
      if (others.length < asked.length) keep(ctx, others);
    },
  };
}
