/** Sign-ins elsewhere that are under way: what the answer is held against, for one browser, once. */
import type { Context } from 'koa';
import type { ShownOnce } from '../../accounts/shown-once.ts';
import type { AttemptLimit, Over } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { randomId } from '../../base/random-id.ts';
import type { UpstreamFlow } from '../../upstream/upstream-provider.ts';
import { ownCookie } from '../own-cookie.ts';
import type { Purpose } from '../sign-in/upstream-ways.ts';

/** What is kept while somebody is there. */
export interface Begun {
  /** The id of the provider. */
  readonly provider: string;
  readonly flow: UpstreamFlow;
  readonly purpose: Purpose;
}

export type UpstreamFlows = ReturnType<typeof createUpstreamFlows>;

/** As long as somebody may take there, in seconds. */
export const LONGEST_SECONDS = 600;
const NAME = /^[A-Za-z0-9_-]{43}$/;

export function createUpstreamFlows(parts: {
  readonly issuer: string;
  /** Of `LONGEST_SECONDS`. Sealed under the name and the browser: neither alone opens it. */
  readonly kept: ShownOnce;
  /** Those that were begun and not finished, per network: nobody fills the store with them. */
  readonly waiting: AttemptLimit;
}) {
  const { issuer, kept, waiting } = parts;
  const cookie = ownCookie(issuer, 'upstream');

  const browserOf = (ctx: Context): string | undefined => {
    const value = cookie.get(ctx);
    return value !== undefined && NAME.test(value) ? value : undefined;
  };

  /** Two tabs of one browser share it. */
  function ownBrowser(ctx: Context): string {
    const browser = browserOf(ctx) ?? randomId('', 43);
    cookie.set(ctx, browser, LONGEST_SECONDS);
    return browser;
  }

  const cancel = (ctx: Context): Promise<void> => waiting.giveBack(networkOf(ctx.ip));

  return {
    /** To be asked first. @returns why not, where too many were begun. */
    begin: (ctx: Context): Promise<Over | undefined> => waiting.count(networkOf(ctx.ip)),
    /** It was not begun after all. */
    cancel,

    /** @param state a random name, 43 characters of `[A-Za-z0-9_-]`. */
    async keep(ctx: Context, state: string, begun: Begun): Promise<void> {
      await kept.keep(ownBrowser(ctx), begun, state);
    },

    /**
     * What the answer that this request brings belongs to. Undefined in another browser, for another
     * provider, after ten minutes, and for all but the first that bring it.
     */
    async take(
      ctx: Context,
      provider: string,
    ): Promise<(Begun & { readonly state: string }) | undefined> {
      const { state } = ctx.query;
      const browser = browserOf(ctx);
      if (browser === undefined || typeof state !== 'string' || !NAME.test(state)) return undefined;
      // One atomic step: of several that bring the same answer one goes on (RFC 9700 §4.7).
      const begun = await kept.take<Begun>(browser, state);
      if (begun) await cancel(ctx);
      // RFC 9700 §4.4.2: each provider has a redirect URI of its own, and answers there only.
      return begun?.provider === provider ? { ...begun, state } : undefined;
    },
  };
}
