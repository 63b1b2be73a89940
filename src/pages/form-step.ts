/** Creates the routes of a page with a form: they show the page, check the sent form, save it and answer it. */
import type { Context, Middleware, Next } from 'koa';
import compose from 'koa-compose';
import { type Message, message, type Text } from '../base/message.ts';
import { type Problem, Refusal } from '../base/refusal.ts';
import { requestState } from '../base/request-state.ts';
import { formOf } from '../provider/form.ts';
import { inEnglish, isUnknown } from '../texts/texts.ts';
import { seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Redraw, type Route } from './routes.ts';
import { NOTHING_SENT, typedOf } from './signed-in.ts';
import type { FormProblem } from './view-data.ts';

/** @typeParam Typed the values of the form, valid or not */
export interface Form<Typed> extends Pick<Redraw, 'isForEverybody'> {
  readonly path: string;
  /** Steps that refuse users who may not see the page. For a sent form, they run after the steps of `ownForm`. */
  readonly admit?: readonly Middleware[];
  /** True if saving needs no recent sign-in, because it is urgent, or because the form asks for the password. */
  readonly isUrgent?: boolean;
  read(form: URLSearchParams, ctx: Context): Typed | Promise<Typed>;
  /** Returns the values that the form shows at first, or the URL of the page that contains the form. */
  stored(ctx: Context): Typed | { readonly page: string };
  draw(ctx: Context, typed: Typed, said: Said): Promise<void>;
  /** Returns the field that caused the problem, and a summary to show above the form; undefined if no field did. */
  fieldOf?(problem: Problem): { readonly field: string; readonly summary?: Message } | undefined;
  /** Runs before the user is asked to re-authenticate. Returns undefined to continue. */
  check?(ctx: Context, typed: Typed): Answer<Typed> | undefined | Promise<Answer<Typed> | undefined>;
  /** @throws Refusal, which is shown in the form together with the typed values */
  save(ctx: Context, typed: Typed): Promise<Answer<Typed>>;
}

/** What a page says about its form: a notice, which is shown once, and problems. */
export interface Said {
  readonly notice: Text | undefined;
  readonly problems: readonly FormProblem[];
}

/** A redirect, with an optional notice on the next page, or the same form again. */
export type Answer<Typed> = { readonly url: string; readonly said?: Text } | Again<Typed>;

interface Again<Typed> {
  /** The HTTP status; by default 422 if there are problems, otherwise 200. */
  readonly status?: number;
  /** Replaces the typed values in the form. */
  readonly typed?: Typed;
  readonly problems?: readonly Problem[];
  /** Sentences above the form. */
  readonly said?: readonly Text[];
}

/** Returns the routes of the page and its form. A form that was rendered for another user or session is not saved. */
export function formRoutes<Typed extends object>(kit: PageKit, form: Form<Typed>): Route[] {
  const { path, admit = [], fieldOf } = form;

  const shown = (problem: Problem): FormProblem => {
    const inField = problemText(problem);
    const found = fieldOf?.(problem);
    return found ? { field: found.field, message: found.summary ?? inField, inField } : { message: inField };
  };

  async function show(ctx: Context): Promise<void> {
    const typed = typedOf(ctx);
    const drawn = typed ? await form.read(typed, ctx) : form.stored(ctx);
    if ('page' in drawn) return seeOther(ctx, drawn.page);
    await form.draw(ctx, drawn, { notice: typed ? NOTHING_SENT : await kit.notices.take(ctx), problems: [] });
  }

  async function answer(ctx: Context, typed: Typed, given: Answer<Typed>): Promise<void> {
    if ('url' in given) return given.said ? kit.notices.redirect(ctx, given.url, given.said) : seeOther(ctx, given.url);
    const { said = [], problems = [] } = given;
    const all = [...said.map((text) => ({ message: text })), ...problems.map(shown)];
    const status = given.status ?? (all.length > 0 ? 422 : undefined);
    if (status !== undefined) ctx.status = status;
    await form.draw(ctx, given.typed ?? typed, { notice: undefined, problems: all });
  }

  const redraw: Redraw = {
    isForEverybody: form.isForEverybody,
    draw: async (ctx, problem) => {
      const { status } = ctx;
      const again = async () => answer(ctx, await form.read(formOf(ctx), ctx), { status, said: [problem] });
      await compose([...admit])(ctx, again);
    },
  };

  const checked = requestState<Typed>('checkForm');

  async function checkForm(ctx: Context, next: Next): Promise<void> {
    const typed = await form.read(formOf(ctx), ctx);
    checked.set(ctx, typed);
    const found = await form.check?.(ctx, typed);
    return found ? answer(ctx, typed, found) : next();
  }

  /** Saves the values that `checkForm` has read, because reading the form again could have a different result. */
  async function save(ctx: Context): Promise<void> {
    const typed = checked.get(ctx);
    await answer(ctx, typed, await form.save(ctx, typed).catch(refusedBy));
  }

  const recent = form.isUrgent ? [] : [kit.requireRecentSignIn];
  return [
    get(path, kit.requireSignedIn, ...admit, show),
    post(path, ...kit.ownForm(redraw), ...admit, checkForm, ...recent, save),
  ];
}

export const problemOf = (code: string, text: Message): Problem => ({ code, message: inEnglish(text), text });

export const problemText = (problem: Problem): Text => problem.text ?? problem.message;

/** Returns the answer to a refused form. @throws any error that is not a Refusal */
function refusedBy(error: unknown) {
  if (!(error instanceof Refusal)) throw error;
  const { problems } = error;
  return problems.length > 0 ? { problems } : { said: [refusalText(error)] };
}

/** Returns a refusal in the language of the page, or in English if it has no translation. */
export function refusalText({ code, message: said, remedy, problems: [problem] }: Refusal): Text {
  if (problem) return problemText(problem);
  const text = message(`client-refusals.${code}`);
  return isUnknown(text) ? `${said} ${remedy}` : text;
}
