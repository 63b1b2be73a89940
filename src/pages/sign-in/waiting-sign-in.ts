/** Remembers which authorization waits for a sign-in, to resume it after the user has set a new password. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';
import { ownCookie } from '../own-cookie.ts';

export type WaitingSignIn = ReturnType<typeof createWaitingSignIn>;

/** How long a user may take on the pages until the new password is set. */
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

    /** Forgets the interaction without a restart, because it was answered. */
    end,

    /** Forgets the interaction. @returns the URL that restarts this one for the signed-in user */
    restartOf(ctx: Context, uid: string): Promise<string | undefined> {
      end(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },

    /** Returns where to sign in: at the interaction while it still waits, otherwise `/login`. */
    async path(ctx: Context): Promise<string> {
      const uid = cookie.get(ctx) ?? '';
      // Use `/login` in another browser, which has no cookie: the interaction can be shown only in its own browser.
      const waits = await interactions.waitsForSignIn(uid);
      return waits ? `${ENDPOINT.interaction}/${uid}` : '/login';
    },

    /** Forgets the interaction. @returns the URL that restarts it, if one waits */
    async restart(ctx: Context): Promise<string | undefined> {
      const uid = cookie.get(ctx);
      if (uid === undefined) return undefined;
      cookie.clear(ctx);
      return interactions.restartSignedIn(ctx, uid);
    },
  };
}
