/** `/logout`: ends the session of this browser, and nothing else: connected clients stay connected. */
import type { Context } from 'koa';
import { seeOther, signedInAccount, visitorOf } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';

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

export function signOutPage({ host, steps, accounts, sessions, upstream }: PageParts): Route[] {
  /** Asks, because a link on any site can lead here; or says that it is done. */
  async function show(ctx: Context): Promise<void> {
    const account = await signedInAccount(ctx, { sessions, accounts });
    if (!account) {
      // Set again: the answer to the form may have cleared the cookies of this site.
      upstream.askWho(ctx);
      return host.render(ctx, 'signed-out', { title: 'Signed out' });
    }
    await host.render(ctx, 'sign-out', { account });
  }

  async function submit(ctx: Context): Promise<void> {
    const visitor = await visitorOf(ctx, { sessions, accounts });
    // The page was drawn for somebody else: it asks, with the name of who would be signed out.
    const isMeant = !visitor || host.drawnFor(ctx, visitor) !== 'somebody else';
    if (isMeant) {
      await sessions.signOut(ctx);
      ctx.set('Clear-Site-Data', CLEARED);
      upstream.askWho(ctx);
    }
    seeOther(ctx, ctx.path);
  }

  return [get('/logout', show), post('/logout', ...steps.form, submit)];
}
