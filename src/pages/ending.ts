/** Routes that ask the user to confirm before they end something, such as a session or a connection. */
import type { Context, Middleware, Next } from 'koa';
import { message, type Text } from '../base/message.ts';
import { requestState } from '../base/request-state.ts';
import { formRoutes, problemOf } from './form-step.ts';
import { newCreationKey } from './forms/sent-form.ts';
import type { PageKit } from './page-kit.ts';
import type { Route } from './routes.ts';
import type { ConfirmView } from './view-data.ts';

export interface Ending<Subject> {
  readonly path: string;
  readonly admit?: readonly Middleware[];
  readonly isUrgent?: boolean;
  /** Returns what this page can end, such as a session or an API key; undefined if it no longer exists. */
  find(ctx: Context): Promise<Subject | undefined>;
  ask(ctx: Context, subject: Subject): Question;
  /** @returns undefined if `subject` no longer exists @throws Refusal, which is shown above the confirmation form */
  end(ctx: Context, subject: Subject): Promise<Ended | undefined>;
  /** The notice if `find` or `end` returns undefined. One text for all causes does not reveal which ids exist. */
  readonly already: Text;
  /** Returns the URL to which *Cancel* leads. A confirmation redirects the user to the same URL by default. */
  back(ctx: Context): string;
}

export interface Question
  extends Pick<ConfirmView, 'section' | 'heading' | 'warning' | 'consequences' | 'fields' | 'button'> {
  /** The text that the user must type before the button has an effect. */
  readonly toType?: string | undefined;
}

/** A redirect (by default to the URL of *Cancel*) with a notice, or the reason why nothing was ended. */
export type Ended =
  | { readonly said?: Text; readonly url?: string }
  | { readonly status: number; readonly said: [Text] };

const NAME_FIELD = 'confirm-name';
const NOT_TYPED = problemOf('not_typed', message('confirm.not-typed'));

const normalized = (text: string): string => text.normalize('NFC').trim();

/** Returns the routes of a confirmation page and its form. If `find` finds nothing, shows the notice `already`. */
export function endingRoutes<Subject>(kit: PageKit, ending: Ending<Subject>): Route[] {
  const { path, admit = [], isUrgent, find, ask, end, already, back } = ending;
  const subjects = requestState<{ readonly subject: Subject }>('requireSubject');
  const questionOf = (ctx: Context): Question => ask(ctx, subjects.get(ctx).subject);

  async function requireSubject(ctx: Context, next: Next): Promise<void> {
    const subject = await find(ctx);
    if (subject === undefined) return kit.notices.redirect(ctx, back(ctx), already);
    subjects.set(ctx, { subject });
    await next();
  }

  return formRoutes<{ readonly typed: string }>(kit, {
    path,
    admit: [...admit, requireSubject],
    isUrgent: isUrgent ?? false,
    isForEverybody: false,
    read: (form) => ({ typed: form.get('confirm_name') ?? '' }),
    stored: () => ({ typed: '' }),
    fieldOf: ({ code }) => (code === NOT_TYPED.code ? { field: NAME_FIELD } : undefined),
    draw(ctx, { typed }, said) {
      const { toType, ...question } = questionOf(ctx);
      return kit.render(ctx, 'confirm', {
        ...question,
        ...said,
        typed: toType === undefined ? undefined : { what: toType, value: typed },
        creationKey: newCreationKey(),
        action: ctx.path,
        cancel: back(ctx),
      });
    },
    check(ctx, { typed }) {
      const { toType } = questionOf(ctx);
      return toType === undefined || normalized(typed) === toType ? undefined : { problems: [NOT_TYPED] };
    },
    async save(ctx) {
      const ended = await end(ctx, subjects.get(ctx).subject);
      if (ended && 'status' in ended) return ended;
      return { url: back(ctx), ...(ended ?? { said: already }) };
    },
  });
}
