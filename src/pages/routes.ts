/** How a page says which requests it answers, and what stands before each answer. */
import type { Context, Middleware, Next } from 'koa';

/** Mounted by the host; `test/host/routes.test.ts` holds the table of all of them. */
export interface Route {
  /** GET answers HEAD as well. */
  readonly method: string;
  /** As the router writes it: `/profile/connections/:id`. More than one fits? The first answers. */
  readonly path: string;
  /** In order, each named after what it requires or does. */
  readonly steps: readonly Middleware[];
}

export const get = (path: string, ...steps: Middleware[]): Route => ({
  method: 'GET',
  path,
  steps,
});

export const post = (path: string, ...steps: Middleware[]): Route => ({
  method: 'POST',
  path,
  steps,
});

/** What stands before the answers of most pages. */
export interface PageSteps {
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
}

/** How the page of a form is drawn with what was sent, where more was filled in than a button. */
export interface Redraw {
  /** Somebody else has this page too, and the form does the same there. */
  readonly isForEverybody: boolean;
  draw(ctx: Context, problem: string): Promise<void>;
}
