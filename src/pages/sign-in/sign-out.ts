/** `/logout`: ends the session of this browser. Connected clients stay connected. */
import type { Context } from 'koa';
import { message, type Text } from '../../base/message.ts';
import type { NetworkCheck } from '../../base/network-address.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { formOf } from '../../provider/form.ts';
import { clearOwnCookies } from '../own-cookie.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { UpstreamSignIns } from './upstream-providers.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-out': { readonly account: AccountSummary };
    readonly 'signed-out': {
      /** The names of the providers at which the previous user may still be signed in. */
      readonly providers: readonly string[];
      readonly notice?: Text | undefined;
    };
  }
}

/**
 * Deletes the pages in the browser before the next user comes. Does not include `"cookies"`, which would also delete
 * the cookies of all other sites below the same registered domain, and the cookie that marks a known browser.
 */
const CLEARED = '"cache", "storage"';

/** Cookies that show nothing about the user. `ask_who` makes providers ask who signs in next. */
const KEPT_ON_SHARED_TERMINAL = ['ask_who', 'device', 'form', 'language', 'passkey', 'upstream'];
/** `browser` is needed to find form drafts, so that a sign-out does not lose what was typed. */
const KEPT_BY_SIGN_OUT = [...KEPT_ON_SHARED_TERMINAL, 'browser'];
const KEPT_BY_FORGET = ['ask_who'];

export function signOutPage(parts: {
  readonly kit: PageKit;
  readonly issuer: string;
  readonly sessions: Pick<BrowserSessions, 'signOut'>;
  /** True for an address in the setting `sessions.shared_terminals`. */
  readonly isShared: NetworkCheck;
  readonly upstream: Pick<UpstreamSignIns, 'askWho' | 'providers'>;
}): Route[] {
  const { kit, issuer, sessions, isShared, upstream } = parts;

  /** Asks a signed-in user to confirm, because any site can link to this page. */
  async function show(ctx: Context): Promise<void> {
    const visitor = await kit.signedInOf(ctx);
    if (visitor) return kit.render(ctx, 'sign-out', { account: visitor.account });
    const providers = upstream.providers.map(({ label }) => label);
    await kit.render(ctx, 'signed-out', { providers, notice: await kit.notices.take(ctx) });
  }

  async function submit(ctx: Context): Promise<void> {
    // Sign out even if PostgreSQL is unavailable and the user is unknown, because the form belongs to this browser.
    const visitor = await kit.signedInOf(ctx).catch(() => undefined);
    // If the form was rendered for another user, show the page again with the name of the current user.
    if (visitor && kit.formSession(ctx, visitor) === 'somebody else') return seeOther(ctx, ctx.path);
    const isForgotten = formOf(ctx).has('forget');
    // Clear the browser before any work that can fail, because the next user must not find what this user has left.
    ctx.set('Clear-Site-Data', CLEARED);
    const kept = isShared(ctx.ip) ? KEPT_ON_SHARED_TERMINAL : KEPT_BY_SIGN_OUT;
    clearOwnCookies(ctx, issuer, isForgotten ? KEPT_BY_FORGET : kept);
    upstream.askWho(ctx);
    await sessions.signOut(ctx);
    if (isForgotten) await kit.notices.redirect(ctx, ctx.path, message('signed-out.forgotten'));
    else seeOther(ctx, ctx.path);
  }

  return [get('/logout', show), post('/logout', ...kit.form, submit)];
}
