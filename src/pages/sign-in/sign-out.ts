/** `/logout`: ends the session of this browser only; connected clients stay connected. */
import type { Context } from 'koa';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { UpstreamSignIns } from './upstream-ways.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-out': { readonly account: AccountSummary };
    readonly 'signed-out': {
      /** The names of the providers with which users sign in. */
      readonly providers: readonly string[];
    };
  }
}

/**
 * Removes our pages from the browser's stores before its next user comes. Not `"cookies"`: that
 * would also delete the cookies of every other site below the same registered domain, and our own
 * cookie that marks this browser as known to the account.
 */
const CLEARED = '"cache", "storage"';

export function signOutPage(parts: {
  readonly kit: PageKit;
  readonly sessions: Pick<BrowserSessions, 'signOut'>;
  readonly upstream: Pick<UpstreamSignIns, 'askWho' | 'ways'>;
}): Route[] {
  const { kit, sessions, upstream } = parts;

  /** Asks for confirmation, because any site can link here, or says that the user is signed out. */
  async function show(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    if (!visitor) {
      // Set the cookie again: the response to the form may have cleared our cookies.
      upstream.askWho(ctx);
      return kit.render(ctx, 'signed-out', { providers: upstream.ways.map(({ label }) => label) });
    }
    await kit.render(ctx, 'sign-out', { account: visitor.account });
  }

  async function submit(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    // If the form was rendered for another user, ask again with the name of the current user.
    const isMeant = !visitor || kit.formSession(ctx, visitor) !== 'somebody else';
    if (isMeant) {
      await sessions.signOut(ctx);
      ctx.set('Clear-Site-Data', CLEARED);
      upstream.askWho(ctx);
    }
    seeOther(ctx, ctx.path);
  }

  return [get('/logout', show), post('/logout', ...kit.form, submit)];
}
