/** Remembers which interaction waits for a sign-in, to resume it after the user has set a new password. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';
import { ownCookie } from '../own-cookie.ts';

export type WaitingSignIn = ReturnType<typeof createWaitingSignIn>;

/** How long a user may take to set the new password. */
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
    begin: (ctx: Context, uid: string): void => cookie.set(ctx, uid, MAX_WAIT_SECONDS),

    end,

    /** Forgets the waiting interaction. @returns the URL that restarts interaction `uid` for the signed-in user */
    restartOf(ctx: Context, uid: string): Promise<string | undefined> {
      end(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },

    /** Returns the path of the sign-in page: that of the interaction while it waits, otherwise `/login`. */
    async path(ctx: Context): Promise<string> {
      const uid = cookie.get(ctx) ?? '';
      // Another browser has no cookie and gets `/login`, because the interaction can be shown only in its own browser.
      const waits = await interactions.waitsForSignIn(uid);
      return waits ? `${ENDPOINT.interaction}/${uid}` : '/login';
    },

    /** Forgets the waiting interaction. @returns the URL that restarts it, if there is one */
    async restart(ctx: Context): Promise<string | undefined> {
      const uid = cookie.get(ctx);
      if (uid === undefined) return undefined;
      cookie.clear(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },
  };
}
