/** The functions that all pages need. A page receives its other dependencies as separate parameters. */
import type { Context, Middleware, Next } from 'koa';
import type { FormChecks, Notices, Visitor } from './page.ts';
import type { Redraw } from './routes.ts';
import type { Render } from './view-data.ts';

export interface PageKit extends Pick<FormChecks, 'formSession'> {
  readonly render: Render;
  /** Returns a function that names rights in the user's language, with the operator's own texts if there are any. */
  rightsInWords(ctx: Context): (rights: readonly string[]) => string;
  readonly notices: Notices;
  /** Returns the signed-in user, unless they need a stronger sign-in first. */
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  /** Returns the signed-in user, even if they need a stronger sign-in first. */
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  /** Sets the headers of a page whose form can redirect to the site of a client. */
  readonly pageToClient: Middleware;
  /** Steps of every form, which read the form and store the response for the Back button. They check no sign-in. */
  readonly form: readonly Middleware[];
  /**
   * Runs the next step if a user is signed in. Otherwise stores the typed form, which the page shows again after the
   * sign-in (see `typedOf`), and redirects to the sign-in.
   */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * Returns steps that refuse a form which was rendered for another user or session. The response says who is signed in
   * now, and shows what was typed.
   */
  ownForm(redraw?: Redraw): readonly Middleware[];
  /**
   * Runs the next step if the sign-in is recent. Otherwise asks the user to re-authenticate, on a page that contains
   * the sent form in hidden fields. Must run after the steps of `ownForm`.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
  /** True if `requireRecentSignIn` would not ask the user to re-authenticate. */
  isRecent(ctx: Context): Promise<boolean>;
}
