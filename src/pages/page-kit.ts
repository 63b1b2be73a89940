/** The functions that every page needs. A page receives all other dependencies as parameters of its own. */
import type { Context, Middleware, Next } from 'koa';
import type { Texts } from '../texts/texts.ts';
import type { FormSession, Notices, Visitor } from './page.ts';
import type { Redraw } from './routes.ts';
import type { Render } from './view-data.ts';

export interface PageKit {
  readonly render: Render;
  /** Returns the function that names rights in the operator's words, in the user's language. */
  rightsInWords(ctx: Context): (rights: readonly string[]) => string;
  /** Returns the texts in the user's language, for texts outside of views. */
  textsFor(ctx: Context): Texts;
  readonly notices: Notices;
  /** Returns the signed-in user who may act. */
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  /** Returns the signed-in user, even one who needs a stronger sign-in (page.ts). */
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  /** Compares the user and session for which a sent form was rendered with the current ones. */
  formSession(ctx: Context, visitor: Visitor | undefined): FormSession;
  /** Route step: sets the headers of a page whose form can, through redirects, lead to a client's site. */
  readonly pageToClient: Middleware;
  /** Steps for each of our forms: they read the form (`formOf`) and keep the response for Back, but check no user. */
  readonly form: readonly Middleware[];
  /**
   * Continues if a user is signed in (see `accountOf`). Otherwise redirects to the sign-in and
   * keeps the typed form, which the page shows again afterwards (see `typedOf`).
   */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * Steps for a form that was rendered for this user and session. A form for another user or session has no effect: the
   * response says who is signed in now, and shows what was typed.
   */
  ownForm(redraw?: Redraw): readonly Middleware[];
  /**
   * Runs after `ownForm`: continues if the sign-in is recent; otherwise asks the user to re-authenticate, on a page
   * that contains the form's values in hidden fields, so that nothing typed is lost.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
  /** True if `requireRecentSignIn` would continue without asking. */
  isRecent(ctx: Context): Promise<boolean>;
}
