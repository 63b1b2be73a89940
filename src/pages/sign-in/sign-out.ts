/** `/logout`: ends the session of this browser only; connected clients stay connected. */
import type { Context } from 'koa';
import { message, type Text } from '../../base/message.ts';
import type { NetworkCheck } from '../../base/network-address.ts';
import { createSeals } from '../../base/seals.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { formOf } from '../../provider/form.ts';
import type { UpstreamSignOut } from '../../upstream/upstream-provider.ts';
import { clearOwnCookies } from '../own-cookie.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { UpstreamSignIns } from './upstream-ways.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-out': { readonly account: AccountSummary };
    readonly 'signed-out': {
      /** The names of the providers where the previous user may still be signed in. */
      readonly providers: readonly string[];
      /** Where the user signs out of the first provider, too. */
      readonly url?: string | undefined;
      /** Says that this computer was forgotten. */
      readonly notice?: Text | undefined;
    };
  }
}

/**
 * Removes our pages from the browser's stores before its next user comes. Not `"cookies"`: that
 * would also delete the cookies of every other site below the same registered domain, and our own
 * cookie that marks this browser as known to the account.
 */
const CLEARED = '"cache", "storage"';

/** Cookies that show nothing about the user; `ask_who` also covers the sign-ins of `upstream`. */
const KEPT_ON_SHARED_TERMINAL = ['ask_who', 'device', 'form', 'language', 'passkey', 'upstream'];
/** `browser` finds forms in progress, so that the next user's sign-out loses nothing typed. */
const KEPT_BY_SIGN_OUT = [...KEPT_ON_SHARED_TERMINAL, 'browser'];
const KEPT_BY_FORGET = ['ask_who'];
const FORGOTTEN = message('signed-out.forgotten');

export function signOutPage(parts: {
  readonly kit: PageKit;
  readonly issuer: string;
  readonly keys: readonly [string, ...string[]];
  readonly sessions: Pick<BrowserSessions, 'signOut'>;
  /** True for an address in `sessions.shared_terminals`. */
  readonly isShared: NetworkCheck;
  readonly upstream: Pick<UpstreamSignIns, 'askWho' | 'findSignOut' | 'ways'>;
}): Route[] {
  const { kit, issuer, sessions, isShared, upstream } = parts;
  // Sealed, because the page has a link to the URL in it.
  const seals = createSeals('sign-out', parts.keys);
  const offered = (ctx: Context) => seals.open<UpstreamSignOut>(String(ctx.query.offer ?? ''));

  /** Asks for confirmation, because any site can link here, or says that the user is signed out. */
  async function show(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    // The forms can redirect to a provider.
    if (upstream.ways.length > 0) await kit.pageToClient(ctx, async () => {});
    if (visitor) return kit.render(ctx, 'sign-out', { account: visitor.account });
    const { provider, url } = offered(ctx) ?? {};
    // A provider returns our `state` with a user who signed out there.
    const others = ctx.query.state === undefined ? upstream.ways.map(({ label }) => label) : [];
    const providers = provider === undefined ? others : [provider];
    await kit.render(ctx, 'signed-out', { providers, url, notice: await kit.notices.take(ctx) });
  }

  async function submit(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    // If the form was rendered for another user, ask again with the name of the current user.
    if (visitor && kit.formSession(ctx, visitor) === 'somebody else') return seeOther(ctx, ctx.path);
    const isForgotten = formOf(ctx).has('forget');
    await sessions.signOut(ctx);
    ctx.set('Clear-Site-Data', CLEARED);
    const kept = isShared(ctx.ip) ? KEPT_ON_SHARED_TERMINAL : KEPT_BY_SIGN_OUT;
    clearOwnCookies(ctx, issuer, isForgotten ? KEPT_BY_FORGET : kept);
    upstream.askWho(ctx);
    const offer = visitor ? await upstream.findSignOut(visitor.session) : offered(ctx);
    if (isForgotten) await kit.notices.redirect(ctx, ctx.path, FORGOTTEN);
    else seeOther(ctx, offer ? `${ctx.path}?offer=${seals.seal(offer)}` : ctx.path);
    if (isForgotten && offer) seeOther(ctx, offer.url);
  }

  return [get('/logout', show), post('/logout', ...kit.form, submit)];
}
