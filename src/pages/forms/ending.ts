/** Asks before something ends: the page with the question, its form, and the answer of a second tab. */
import type { Context, Middleware } from 'koa';
import type { Text } from '../../base/message.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { ConfirmView } from '../view-data.ts';

export interface Ending<Subject> {
  readonly path: string;
  /** The steps before the page, and those before the form. */
  readonly page: readonly Middleware[];
  readonly form: readonly Middleware[];
  /** Returns what the request wants to end; undefined if it has ended, for example in another tab. */
  find(ctx: Context): Promise<Subject | undefined>;
  ask(ctx: Context, subject: Subject): Omit<ConfirmView, 'action' | 'cancel'>;
  /** Ends it. @returns what to say; undefined if it has ended in the meantime */
  end(ctx: Context, subject: Subject): Promise<Text | undefined>;
  /** Answers a second attempt, and any other id, so that no answer reveals which ids exist. */
  readonly already: Text;
  /** The page of *Cancel*, which also shows the result. */
  back(ctx: Context): string;
  /** The page that shows the result, if the user may no longer open the other one. */
  next?(ctx: Context, subject: Subject): string;
}

/** Returns the routes of the question and its form. A second attempt is answered with `already`, not with 404. */
export function endingRoutes<Subject>(kit: Pick<PageKit, 'render' | 'notices'>, ending: Ending<Subject>): Route[] {
  const { path, find, ask, end, already, back, next = back } = ending;

  async function showQuestion(ctx: Context): Promise<void> {
    const subject = await find(ctx);
    if (subject === undefined) return kit.notices.redirect(ctx, back(ctx), already);
    await kit.render(ctx, 'confirm', { ...ask(ctx, subject), action: ctx.path, cancel: back(ctx) });
  }

  async function endIt(ctx: Context): Promise<void> {
    const subject = await find(ctx);
    const said = subject === undefined ? undefined : await end(ctx, subject);
    if (subject === undefined || said === undefined) return kit.notices.redirect(ctx, back(ctx), already);
    await kit.notices.redirect(ctx, next(ctx, subject), said);
  }

  return [get(path, ...ending.page, showQuestion), post(path, ...ending.form, endIt)];
}
