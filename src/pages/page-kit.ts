/** What every page uses, whatever it is about. Anything else a page names in its own parameters. */
import type { Context, Middleware, Next } from 'koa';
import type { DrawnFor, Notices, Visitor } from './page.ts';
import type { Redraw } from './routes.ts';
import type { Render } from './view-data.ts';

export interface PageKit {
  readonly render: Render;
  readonly notices: Notices;
  /** Returns who is signed in, unless the account was suspended or its sessions were ended since. */
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
  /** For whom the page was drawn from which a form is sent, compared with who is signed in now. */
  drawnFor(ctx: Context, visitor: Visitor | undefined): DrawnFor;
  /** Route step: the headers of a page whose form can end at a client. */
  readonly pageToClient: Middleware;
  /** A form of ours, whoever sends it; read (see `formOf`), and its answer kept for Back. */
  readonly form: readonly Middleware[];
  /**
   * Goes on with somebody signed in (see `accountOf`); sends everybody else to sign in. What was
   * typed into a form is then kept, and the page draws it again (see `typedOf`).
   */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * A form of ours from who is signed in, drawn for this session. Of any other nothing is done but
   * to say who is signed in now, with what was typed.
   */
  ownForm(redraw?: Redraw): readonly Middleware[];
  /**
   * After `ownForm`: goes on when the sign-in is recent, else asks for the password on a page that
   * carries the form along, so that nothing typed is lost.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
  /** Whether it would go on without asking. */
  isRecent(ctx: Context): Promise<boolean>;
}
