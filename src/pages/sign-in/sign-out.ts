/** `/logout`: ends the session of this browser, and nothing else: connected clients stay connected. */
import type { Context } from 'koa';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { UpstreamSignIns } from './upstream-ways.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-out': { readonly account: AccountSummary };
    readonly 'signed-out': { readonly title: string };
  }
}

/**
 * What the browser keeps of pages, for the next person at it. Not `"cookies"`: that would also delete
 * those of every other site below the same registered domain, and the one by which this browser is
 * known to the account.
 */
const CLEARED = '"cache", "storage"';

export function signOutPage(parts: {
  readonly kit: PageKit;
  readonly sessions: Pick<BrowserSessions, 'signOut'>;
  readonly upstream: Pick<UpstreamSignIns, 'askWho'>;
}): Route[] {
  const { kit, sessions, upstream } = parts;

  /** Asks, because a link on any site can lead here; or says that it is done. */
  async function show(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    if (!visitor) {
      // Set again: the answer to the form may have cleared the cookies of this site.
      upstream.askWho(ctx);
      return kit.render(ctx, 'signed-out', { title: 'Signed out' });
    }
    await kit.render(ctx, 'sign-out', { account: visitor.account });
  }

  async function submit(ctx: Context): Promise<void> {
    const visitor = await kit.visitorOf(ctx);
    // The page was drawn for somebody else: it asks, with the name of who would be signed out.
    const isMeant = !visitor || kit.drawnFor(ctx, visitor) !== 'somebody else';
    if (isMeant) {
      await sessions.signOut(ctx);
      ctx.set('Clear-Site-Data', CLEARED);
      upstream.askWho(ctx);
    }
    seeOther(ctx, ctx.path);
  }

  return [get('/logout', show), post('/logout', ...kit.form, submit)];
}
