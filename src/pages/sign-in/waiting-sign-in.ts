/** The authorization that waits in this browser for a sign-in: where a new password leads on to. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';

export interface WaitingSignIn {
  /** Notes that the interaction asks for a sign-in. */
  begin(ctx: Context, uid: string): void;
  /** It was answered. */
  end(ctx: Context): void;
  /** Where a person signs in now: for what waits here, as long as it does, or else for themselves. */
  path(ctx: Context): Promise<string>;
}

/** Seconds: as long as a page may be left open. */
const LONGEST = 3_600;

export function createWaitingSignIn({
  issuer,
  interactions,
}: {
  issuer: string;
  interactions: Pick<Interactions, 'waitsForSignIn'>;
}): WaitingSignIn {
  const isSecure = issuer.startsWith('https:');
  const cookieName = isSecure ? '__Host-gate_waiting' : 'gate_waiting';
  // Lax: it comes along with the link of a mail.
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isSecure, path: '/' } as const;
  const options = { ...cookie, signed: false, overwrite: true };

  return {
    begin: (ctx, uid) =>
      void ctx.cookies.set(cookieName, uid, { ...options, maxAge: LONGEST * 1000 }),

    end(ctx) {
      if (ctx.cookies.get(cookieName, { signed: false }) === undefined) return;
      ctx.cookies.set(cookieName, null, options);
    },

    async path(ctx) {
      const uid = ctx.cookies.get(cookieName, { signed: false }) ?? '';
      // Of another browser it would only be said to be over.
      const waits = await interactions.waitsForSignIn(uid);
      return waits ? `${ENDPOINT.interaction}/${uid}` : '/login';
    },
  };
}
