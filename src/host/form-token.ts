/** CSRF protection. Proves that a form came from a page of Gatehouse in this browser, and for which user. */
import type { Context, Next } from 'koa';
import { randomId } from '../base/random-id.ts';
import { requestState } from '../base/request-state.ts';
import { createSeals } from '../base/seals.ts';
import { ownCookie } from '../pages/own-cookie.ts';
import { type FormSession, markOf, type Visitor } from '../pages/page.ts';
import { formOf } from '../provider/form.ts';

/** A form token: an account id or nothing, the session's mark, and a MAC, which also covers the browser id. */
const TOKEN = /^((?:acc_[A-Za-z0-9_-]{16})?)\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

export type FormTokens = ReturnType<typeof createFormTokens>;

/**
 * A random id is in a cookie, and its MAC is in the form. Another site can neither read the cookie nor compute the MAC.
 * `Sec-Fetch-Site` and `Origin` are checked as well. The MAC also covers the account and the session, so the token
 * changes with each sign-in and sign-out.
 */
export function createFormTokens(parts: {
  issuer: string;
  /** The first key signs. Forms that were signed with any of the keys are accepted. */
  keys: readonly [string, ...string[]];
}) {
  const { issuer, keys } = parts;
  const cookie = ownCookie(issuer, 'form');
  const seals = createSeals('form', keys);
  const sent = requestState<{ readonly accountId: string; readonly mark: string }>('requireFormToken');
  const given = requestState<string>('a new browser');

  /**
   * Returns the random id of this browser. A new browser gets the id in a cookie that is deleted when the browser is
   * closed. Several calls during one request set only one cookie.
   */
  function browserOf(ctx: Context): string {
    const known = cookie.longId(ctx) ?? given.find(ctx);
    if (known !== undefined) return known;
    const browserId = randomId('', 43);
    given.set(ctx, browserId);
    cookie.set(ctx, browserId);
    return browserId;
  }

  function refuseOtherOrigins(ctx: Context): void {
    const site = ctx.get('sec-fetch-site');
    const origin = ctx.get('origin');
    if (site !== '' && site !== 'same-origin') ctx.throw(403, 'cross-site request');
    if (origin !== '' && origin !== issuer) ctx.throw(403, 'cross-origin request');
  }

  return {
    browserOf,

    formToken(ctx: Context, visitor: Visitor | undefined): string {
      const holder = `${visitor?.account.id ?? ''}.${markOf(visitor)}`;
      return `${holder}.${seals.macOf(`${browserOf(ctx)}.${holder}`)}`;
    },

    /** Must run after `readForm`. Throws a 403 unless the form is of Gatehouse and was sent from its origin. */
    requireFormToken(ctx: Context, next: Next): Promise<void> {
      refuseOtherOrigins(ctx);
      const browserId = cookie.longId(ctx);
      const token = TOKEN.exec(formOf(ctx).get('form_token') ?? '');
      const [, accountId = '', mark = '', mac = ''] = token ?? [];
      if (!browserId || !seals.isMacOf(mac, `${browserId}.${accountId}.${mark}`)) {
        ctx.throw(403, 'form token is missing or belongs to another browser');
      }
      sent.set(ctx, { accountId, mark });
      return next();
    },

    /** After `requireFormToken`, returns the account of the rendered page; undefined if not signed in. */
    formAccount: (ctx: Context): string | undefined => sent.get(ctx).accountId || undefined,

    /** Must run after `requireFormToken`. Compares the session of the rendered page with the visitor's session. */
    formSession(ctx: Context, visitor: Visitor | undefined): FormSession {
      const token = sent.get(ctx);
      if (token.accountId !== (visitor?.account.id ?? '')) return 'somebody else';
      return token.mark === markOf(visitor) ? 'this session' : 'another session';
    },

    /** Throws a 403 unless the request came from a page of Gatehouse. */
    requireSameOrigin(ctx: Context, next: Next): Promise<void> {
      refuseOtherOrigins(ctx);
      // With a POST, browsers send at least one of the two headers. Without both, the origin is unknown.
      if (!ctx.get('sec-fetch-site') && !ctx.get('origin')) ctx.throw(403, 'no origin');
      return next();
    },
  };
}
