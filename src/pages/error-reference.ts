/** `/errors` and `/errors/:code`: what `error_uri` points to, as pages for developers and as JSON. */
import { readFileSync } from 'node:fs';
import type { Context } from 'koa';
import { parse } from 'yaml';
import type { PageKit } from './page-kit.ts';
import { get, type Lifetimes, type Route } from './routes.ts';
import { durationText } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'error-reference': ErrorReferenceView;
    readonly 'error-reference-index': {
      readonly title: string;
      readonly errors: readonly Pick<ErrorReferenceView, 'code' | 'title'>[];
    };
  }
}

interface ErrorReferenceView {
  /** The `error` code of the response. */
  readonly code: string;
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly ErrorCause[];
  /** The endpoints that answer with this error, each with the status. */
  readonly answers: readonly ErrorAnswer[];
}

interface ErrorAnswer {
  /** A path of this service, or words that say where else the error appears. */
  readonly endpoint: string;
  /** An HTTP status, or words that say what else happens. */
  readonly answer: number | string;
}

interface ErrorCause {
  readonly cause: string;
  readonly remedy: string;
}

/** The texts of an error. The lifetime of refresh tokens replaces `{refreshTokenSeconds}`. */
interface ErrorText extends Omit<ErrorReferenceView, 'code' | 'answers'> {
  readonly answers: Readonly<Record<string, ErrorAnswer['answer']>>;
}

const file = new URL('../../views/error-reference.yaml', import.meta.url);
// Read the texts only once, at startup.
const texts: Readonly<Record<string, ErrorText>> = parse(readFileSync(file, 'utf8'));

/** All documented errors, in the order in which a developer usually meets them. */
export const documentedErrors: readonly string[] = Object.keys(texts);

/** True if `/errors/<code>` exists, so that a response may contain it as `error_uri`. */
export const isDocumentedError = (code: string): boolean => Object.hasOwn(texts, code);

/** Returns the errors with which a path answers, by HTTP status. */
export function answersOf(path: string) {
  const found = Object.entries(texts).flatMap(([code, { title, answers }]) => {
    const status = answers[path];
    return typeof status === 'number' ? [{ code, title, status }] : [];
  });
  return Map.groupBy(found, ({ status }) => status);
}

/** Returns the data of an error's page; undefined for a code without a page. */
export function errorReference(code: string, lifetimes: Lifetimes): ErrorReferenceView | undefined {
  const text = isDocumentedError(code) ? texts[code] : undefined;
  return (
    text && {
      code,
      ...text,
      causes: text.causes.map(({ cause, remedy }) => ({
        cause: withLifetimes(cause, lifetimes),
        remedy,
      })),
      answers: Object.entries(text.answers).map(([endpoint, answer]) => ({ endpoint, answer })),
    }
  );
}

const withLifetimes = (text: string, lifetimes: Lifetimes): string =>
  text.replace(/\{(\w+)\}/g, (_, name: keyof Lifetimes) => durationText(lifetimes[name]));

export function errorReferencePage(parts: {
  readonly kit: Pick<PageKit, 'render'>;
  readonly issuer: string;
  readonly lifetimes: Lifetimes;
}): Route[] {
  const { kit, issuer, lifetimes } = parts;

  function inJson(code: string) {
    const { code: error, ...described } = errorReference(code, lifetimes) ?? { code };
    return { error, ...described, url: `${issuer}/errors/${code}` };
  }

  async function index(ctx: Context): Promise<void> {
    if (wantsJson(ctx)) ctx.body = { errors: documentedErrors.map(inJson) };
    else {
      await kit.render(ctx, 'error-reference-index', {
        title: 'Error reference',
        errors: Object.entries(texts).map(([code, { title }]) => ({ code, title })),
      });
    }
  }

  /** Shows the page of an error; leaves an unknown code to Koa's 404. */
  async function show(ctx: Context): Promise<void> {
    const code = String(ctx.params.code);
    const page = errorReference(code, lifetimes);
    if (page && wantsJson(ctx)) ctx.body = inJson(code);
    else if (page) await kit.render(ctx, 'error-reference', page);
  }

  return [get('/errors', index), get('/errors/:code', show)];
}

/** True for a program that asks for JSON, of any web page; browsers and `*\/*` get the page. */
function wantsJson(ctx: Context): boolean {
  ctx.vary('Accept');
  if (ctx.accepts('html', 'json') !== 'json') return false;
  ctx.set('Access-Control-Allow-Origin', '*');
  return true;
}
