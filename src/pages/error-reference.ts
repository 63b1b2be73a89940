/** `/errors` and `/errors/:code`: the explanations to which `error_uri` points. */
import { readFileSync } from 'node:fs';
import type { Context } from 'koa';
import { parse } from 'yaml';
import { type Message, message } from '../base/message.ts';
import { inEnglish, isUnknown } from '../texts/texts.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Lifetimes, type Route } from './routes.ts';
import { durationOf } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'error-reference': ErrorReferenceView;
    readonly 'error-reference-index': {
      readonly errors: readonly Pick<ErrorReferenceView, 'code' | 'title'>[];
    };
  }
}

type ErrorReferenceView = NonNullable<ReturnType<typeof errorReference>>;

const file = new URL('../../views/error-reference.yaml', import.meta.url);
const answersByCode: Readonly<Record<string, Readonly<Record<string, number | string>>>> = parse(
  readFileSync(file, 'utf8'),
);

/** The codes of all documented errors, in the order in which developers usually meet them. */
export const documentedErrors: readonly string[] = Object.keys(answersByCode);

/** True if the page `/errors/<code>` exists, to which `error_uri` can point. */
export const isDocumentedError = (code: string): boolean => Object.hasOwn(answersByCode, code);

const titleOf = (code: string): Message => message(`error-reference.${code}-title`);

/** Returns the errors that a path can return, with English titles, grouped by HTTP status. */
export function answersOf(path: string) {
  const found = Object.entries(answersByCode).flatMap(([code, answers]) => {
    const status = answers[path];
    return typeof status === 'number' ? [{ code, title: inEnglish(titleOf(code)), status }] : [];
  });
  return Map.groupBy(found, ({ status }) => status);
}

/** Returns the data of the page of an error; undefined for a code without a page. */
export function errorReference(code: string, lifetimes: Lifetimes) {
  const answers = isDocumentedError(code) ? answersByCode[code] : undefined;
  return (
    answers && {
      code,
      title: titleOf(code),
      meaning: message(`error-reference.${code}-meaning`),
      causes: causesOf(code, lifetimes),
      answers: Object.entries(answers).map(([endpoint, answer]) => ({
        endpoint: endpoint.startsWith('/') ? endpoint : inWords(endpoint),
        answer: typeof answer === 'number' ? answer : inWords(answer),
      })),
    }
  );
}

function causesOf(code: string, lifetimes: Lifetimes) {
  const durations = Object.entries(lifetimes).map(([name, seconds]) => [name, durationOf(seconds)] as const);
  const values = Object.fromEntries(durations);
  const causes: { cause: Message; remedy: Message }[] = [];
  for (let index = 1; ; index += 1) {
    const cause = message(`error-reference.${code}-cause-${index}`, values);
    if (isUnknown(cause)) return causes;
    causes.push({ cause, remedy: message(`error-reference.${code}-remedy-${index}`) });
  }
}

function inWords(where: string): Message {
  const slug = where.replace(/\W+/g, '-');
  return message(`error-reference.is-${slug}`);
}

export function errorReferencePage(parts: {
  readonly kit: Pick<PageKit, 'render'>;
  readonly lifetimes: Lifetimes;
}): Route[] {
  const { kit, lifetimes } = parts;

  async function index(ctx: Context): Promise<void> {
    const errors = documentedErrors.map((code) => ({ code, title: titleOf(code) }));
    await kit.render(ctx, 'error-reference-index', { errors });
  }

  async function show(ctx: Context): Promise<void> {
    const page = errorReference(String(ctx.params.code), lifetimes);
    if (page) await kit.render(ctx, 'error-reference', page);
  }

  return [get('/errors', index), get('/errors/:code', show)];
}
