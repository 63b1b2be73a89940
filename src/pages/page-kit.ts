/** What every page needs. A page receives everything else through its own parameters. */
import type { Context, Middleware, Next } from 'koa';
import type { DrawnFor, Notices, Visitor } from './page.ts';
import type { Redraw } from './routes.ts';
import type { Render } from './view-data.ts';

export interface PageKit {
  readonly render: Render;
  readonly notices: Notices;
  /** Returns the signed-in user, unless the account was suspended or its sessions were ended. */
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  /** Compares the user and session for which a sent form was rendered with the current ones. */
  drawnFor(ctx: Context, visitor: Visitor | undefined): DrawnFor;
  /** Route step: sets the headers of a page whose form can lead to a client by redirects. */
  readonly pageToClient: Middleware;
  /** Steps for a form of ours, from any sender: read it (`formOf`), keep the answer for Back. */
  readonly form: readonly Middleware[];
  /**
   * Continues if a user is signed in (see `accountOf`); otherwise redirects to the sign-in, keeps
   * what was typed into a form, and the page shows it again afterwards (see `typedOf`).
   */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * Steps for a form that was rendered for this user and session. Any other form does nothing: the
   * answer says who is signed in now and shows what was typed.
   */
  ownForm(redraw?: Redraw): readonly Middleware[];
  /**
   * After `ownForm`: continues if the sign-in is recent; otherwise asks the user to confirm it on a
   * page that carries the form in hidden fields, so that nothing typed is lost.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
  /** True if `requireRecentSignIn` would continue without asking. */
  isRecent(ctx: Context): Promise<boolean>;
}
