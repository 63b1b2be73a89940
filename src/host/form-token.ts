/** Proof that a form was on a page of ours, in the browser that posts it (CSRF protection). */
import type { Context, Next } from 'koa';
import { formOf } from '../provider/form.ts';
import { randomId } from '../random-id.ts';
import { createSeals } from '../seals.ts';

const BROWSER_ID = /^[A-Za-z0-9_-]{43}$/;

export interface FormTokens {
  /** The value of the hidden field; gives the browser its cookie at the first form. */
  formToken(ctx: Context): string;
  /** Route step after `readForm`: stops with 403 unless the form is ours and was sent from us. */
  requireFormToken(ctx: Context, next: Next): Promise<void>;
  /** Route step: stops with 403 unless the request came from a page of ours. */
  requireSameOrigin(ctx: Context, next: Next): Promise<void>;
}

/**
 * A random cookie and its MAC in the form: another site can neither read the one nor make the
 * other. What the browser itself says about where a request comes from is checked as well.
 */
export function createFormTokens({
  issuer,
  keys,
}: {
  issuer: string;
  /** The first signs, all are accepted. */
  keys: readonly string[];
}): FormTokens {
  const isSecure = issuer.startsWith('https:');
  const cookieName = isSecure ? '__Host-gate_form' : 'gate_form';
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isSecure, path: '/', signed: false };

  const seals = createSeals('form', keys);

  const browserIdOf = (ctx: Context): string | undefined => {
    const value = ctx.cookies.get(cookieName, { signed: false });
    return value !== undefined && BROWSER_ID.test(value) ? value : undefined;
  };

  const isOurs = (browserId: string | undefined, token: string | null): boolean =>
    browserId !== undefined && seals.isMacOf(token ?? '', browserId);

  function refuseOtherOrigins(ctx: Context): void {
    const site = ctx.get('sec-fetch-site');
    const origin = ctx.get('origin');
    if (site !== '' && site !== 'same-origin') ctx.throw(403, 'cross-site request');
    if (origin !== '' && origin !== issuer) ctx.throw(403, 'cross-origin request');
  }

  return {
    formToken(ctx) {
      let browserId = browserIdOf(ctx);
      if (browserId === undefined) {
        browserId = randomId('', 43);
        ctx.cookies.set(cookieName, browserId, { ...cookie, sameSite: 'lax' });
      }
      return seals.macOf(browserId);
    },

    requireFormToken(ctx, next) {
      refuseOtherOrigins(ctx);
      if (!isOurs(browserIdOf(ctx), formOf(ctx).get('form_token'))) {
        ctx.throw(403, 'form token missing or not of this browser');
      }
      return next();
    },

    requireSameOrigin(ctx, next) {
      refuseOtherOrigins(ctx);
      // A browser names one of the two in every POST; a request with neither proves nothing.
      if (!ctx.get('sec-fetch-site') && !ctx.get('origin')) ctx.throw(403, 'no origin');
      return next();
    },
  };
}
