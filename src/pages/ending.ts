/** Asks before something ends: the page with the question, its form, and the answer of a second tab. */
import type { Context, Middleware, Next } from 'koa';
import { message, type Text } from '../base/message.ts';
import { requestState } from '../base/request-state.ts';
import { formOf } from '../provider/form.ts';
import { newCreationKey } from './forms/sent-form.ts';
import { seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Route } from './routes.ts';
import { NOTHING_SENT, typedOf } from './signed-in.ts';
import type { ConfirmView } from './view-data.ts';

export interface Ending<Subject> {
  readonly path: string;
  /** The steps before the page, and those before the form. */
  readonly page: readonly Middleware[];
  readonly form: readonly Middleware[];
  /** False if a session suffices, so that the user can stop an app at once. */
  readonly needsRecentSignIn: boolean;
  /** Returns what the request wants to end; undefined if it has ended, for example in another tab. */
  find(ctx: Context): Promise<Subject | undefined>;
  ask(ctx: Context, subject: Subject): Question;
  /** Ends it. @returns undefined if it has ended in the meantime */
  end(ctx: Context, subject: Subject): Promise<Ended | undefined>;
  /** Answers a second attempt, and any other id, so that no answer reveals which ids exist. */
  readonly already: Text;
  /** The page of *Cancel*, which also shows the result. */
  back(ctx: Context): string;
}

export interface Question extends Omit<ConfirmView, 'action' | 'cancel' | 'typed'> {
  /** What the user must type before the button has an effect. */
  readonly toType?: string | undefined;
}

/** A refusal, or the next page with a sentence; without a URL, it is that of *Cancel*. */
export type Ended = { readonly problem: Text } | { readonly said?: Text; readonly url?: string };

const TYPED_FIELD = 'confirm_name';
const NOT_TYPED = message('confirm.not-typed');

const normalized = (text: string): string => text.normalize('NFC').trim();

/** Returns the routes of the question and its form. A second attempt is answered with `already`, not with 404. */
export function endingRoutes<Subject>(
  kit: Pick<PageKit, 'render' | 'notices' | 'requireRecentSignIn'>,
  ending: Ending<Subject>,
): Route[] {
  const { path, find, ask, end, already, back } = ending;
  const subjects = requestState<{ readonly subject: Subject }>('requireTyped');

  async function draw(ctx: Context, subject: Subject, problem?: Text): Promise<void> {
    const { toType, ...question } = ask(ctx, subject);
    const typed = (ctx.method === 'POST' ? formOf(ctx) : typedOf(ctx))?.get(TYPED_FIELD) ?? '';
    await kit.render(ctx, 'confirm', {
      ...question,
      notice: typedOf(ctx) && NOTHING_SENT,
      problem,
      typed: toType === undefined ? undefined : { what: toType, value: typed, isWrong: problem === NOT_TYPED },
      creationKey: newCreationKey(),
      action: ctx.path,
      cancel: back(ctx),
    });
  }

  const sayAlready = (ctx: Context): Promise<void> => kit.notices.redirect(ctx, back(ctx), already);

  async function showQuestion(ctx: Context): Promise<void> {
    const subject = await find(ctx);
    await (subject === undefined ? sayAlready(ctx) : draw(ctx, subject));
  }

  /** Continues if there is something to end, and the user typed what the page asks for. */
  async function requireTyped(ctx: Context, next: Next): Promise<void> {
    const subject = await find(ctx);
    if (subject === undefined) return sayAlready(ctx);
    subjects.set(ctx, { subject });
    const { toType } = ask(ctx, subject);
    if (toType === undefined || normalized(formOf(ctx).get(TYPED_FIELD) ?? '') === toType) return next();
    ctx.status = 422;
    await draw(ctx, subject, NOT_TYPED);
  }

  async function endIt(ctx: Context): Promise<void> {
    const { subject } = subjects.get(ctx);
    const ended = await end(ctx, subject);
    if (!ended) return sayAlready(ctx);
    if ('problem' in ended) {
      ctx.status = 422;
      return draw(ctx, subject, ended.problem);
    }
    const { said, url = back(ctx) } = ended;
    await (said === undefined ? seeOther(ctx, url) : kit.notices.redirect(ctx, url, said));
  }

  const recent = ending.needsRecentSignIn ? [kit.requireRecentSignIn] : [];
  return [get(path, ...ending.page, showQuestion), post(path, ...ending.form, requireTyped, ...recent, endIt)];
}
