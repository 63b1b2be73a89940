/** Remembers which authorization waits for a sign-in, to resume it after a new password. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';
import { ownCookie } from '../own-cookie.ts';

export type WaitingSignIn = ReturnType<typeof createWaitingSignIn>;

/** How long the pages on the way to a new password may stay open. */
const MAX_WAIT_SECONDS = 3_600;

export function createWaitingSignIn(parts: {
  issuer: string;
  interactions: Pick<Interactions, 'waitsForSignIn' | 'restartSignedIn'>;
}) {
  const { issuer, interactions } = parts;
  const cookie = ownCookie(issuer, 'waiting');

  const end = (ctx: Context): void => {
    if (cookie.get(ctx) !== undefined) cookie.clear(ctx);
  };

  return {
    /** Remembers in a cookie that the interaction waits for a sign-in. */
    begin: (ctx: Context, uid: string): void => cookie.set(ctx, uid, MAX_WAIT_SECONDS),

    /** Ends the wait without a restart, because the interaction was answered. */
    end,

    /** Ends the wait. @returns the URL that restarts this interaction for the signed-in user. */
    restartOf(ctx: Context, uid: string): Promise<string | undefined> {
      end(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },

    /** Returns where to sign in: at the interaction while it still waits, otherwise `/login`. */
    async path(ctx: Context): Promise<string> {
      const uid = cookie.get(ctx) ?? '';
      // In another browser use `/login`: there the interaction's page would say that it has ended.
      const waits = await interactions.waitsForSignIn(uid);
      return waits ? `${ENDPOINT.interaction}/${uid}` : '/login';
    },

    /** Ends the wait. @returns the URL that restarts the waiting interaction, if any. */
    async restart(ctx: Context): Promise<string | undefined> {
      const uid = cookie.get(ctx);
      if (uid === undefined) return undefined;
      cookie.clear(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },
  };
}
