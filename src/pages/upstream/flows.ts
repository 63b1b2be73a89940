/** Pending sign-ins at providers. Each is bound to one browser, and its callback is accepted only once. */
import type { Context } from 'koa';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import type { AttemptLimit, Over } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { isLongId, randomId } from '../../base/random-id.ts';
import type { UpstreamFlow } from '../../upstream/upstream-provider.ts';
import { ownCookie } from '../own-cookie.ts';
import type { Purpose } from '../sign-in/upstream-providers.ts';

/** The data that is stored while the user is at the provider. */
export interface Begun {
  readonly provider: string;
  readonly flow: UpstreamFlow;
  readonly purpose: Purpose;
}

export type UpstreamFlows = ReturnType<typeof createUpstreamFlows>;

/** The maximum time that a user may take at the provider. */
export const LONGEST_SECONDS = 600;

export function createUpstreamFlows(parts: {
  readonly issuer: string;
  /** Stores values for `LONGEST_SECONDS`. The name and the browser's id are needed to decrypt a value. */
  readonly kept: OneTimeValues;
  /** Limits pending sign-ins for each network, so that an attacker cannot fill the store. */
  readonly waiting: AttemptLimit;
}) {
  const { issuer, kept, waiting } = parts;
  const cookie = ownCookie(issuer, 'upstream');

  /** Returns the id of this browser, which is the same in all tabs, and renews its cookie. */
  function ownBrowser(ctx: Context): string {
    const browser = cookie.longId(ctx) ?? randomId('', 43);
    cookie.set(ctx, browser, LONGEST_SECONDS);
    return browser;
  }

  const cancel = (ctx: Context): Promise<void> => waiting.refund(networkOf(ctx.ip));

  return {
    /** Counts a new sign-in. Call this before `keep`. @returns the exceeded limit if too many sign-ins are pending */
    begin: (ctx: Context): Promise<Over | undefined> => waiting.count(networkOf(ctx.ip)),
    /** Undoes `begin` after a failure. */
    cancel,

    /** @param state a random name: 43 characters of `[A-Za-z0-9_-]` */
    async keep(ctx: Context, state: string, begun: Begun): Promise<void> {
      await kept.store(ownBrowser(ctx), begun, state);
    },

    /**
     * Returns the pending sign-in to which the callback belongs. Returns undefined in another browser, for another
     * provider, after ten minutes, and for every callback except the first.
     */
    async take(ctx: Context, provider: string): Promise<(Begun & { readonly state: string }) | undefined> {
      const { state } = ctx.query;
      const browser = cookie.longId(ctx);
      if (browser === undefined || !isLongId(state)) return undefined;
      // Read and delete the sign-in in one step: only one callback with the same state may continue (RFC 9700 §4.7).
      const begun = await kept.take<Begun>(browser, state);
      if (begun) await cancel(ctx);
      // RFC 9700 §4.4.2: each provider has its own redirect URI and may answer only there.
      return begun?.provider === provider ? { ...begun, state } : undefined;
    },
  };
}
