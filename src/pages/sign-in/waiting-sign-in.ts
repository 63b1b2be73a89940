/** The authorization that waits in this browser for a sign-in: where a new password leads on to. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';
import { ownCookie } from '../own-cookie.ts';

export type WaitingSignIn = ReturnType<typeof createWaitingSignIn>;

/** Seconds: as long as a page may be left open. */
const LONGEST = 3_600;

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
    /** Notes that the interaction asks for a sign-in. */
    begin: (ctx: Context, uid: string): void => cookie.set(ctx, uid, LONGEST),

    /** It was answered. */
    end,

    /** Ends the wait. @returns where this interaction begins again for the user who signed in. */
    restartOf(ctx: Context, uid: string): Promise<string | undefined> {
      end(ctx);
      return interactions.restartSignedIn(uid);
    },

    /** Where a person signs in now: for what waits here, as long as it does, or else for themselves. */
    async path(ctx: Context): Promise<string> {
      const uid = cookie.get(ctx) ?? '';
      // Of another browser it would only be said to be over.
      const waits = await interactions.waitsForSignIn(uid);
      return waits ? `${ENDPOINT.interaction}/${uid}` : '/login';
    },

    /** Where what waits here begins again for who is signed in by now; it waits no more. */
    async restart(ctx: Context): Promise<string | undefined> {
      const uid = cookie.get(ctx);
      if (uid === undefined) return undefined;
      cookie.clear(ctx);
      return interactions.restartSignedIn(uid);
    },
  };
}
