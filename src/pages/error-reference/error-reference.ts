/** `/errors` and `/errors/:code`: the short pages that `error_uri` points to, for developers of clients. */
import type { Context } from 'koa';
import { get, type Lifetimes, type PageParts, type Route } from '../routes.ts';
import { authorizationErrorTexts } from './authorization-texts.ts';
import { type ErrorText, tokenErrorTexts } from './token-texts.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'error-reference': ErrorReferenceView;
    readonly 'error-reference-index': {
      readonly title: string;
      readonly errors: readonly Pick<ErrorReferenceView, 'code' | 'title'>[];
    };
  }
}

interface ErrorReferenceView {
  /** The `error` member of the answer. */
  readonly code: string;
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly ErrorCause[];
}

interface ErrorCause {
  readonly cause: string;
  readonly remedy: string;
}

export type DocumentedError = keyof typeof texts;

const texts = { ...tokenErrorTexts, ...authorizationErrorTexts };

/** All of them, in the order a developer meets them. */
export const documentedErrors = Object.keys(texts) as readonly DocumentedError[];

/** Whether `/errors/<code>` exists, so that an answer may carry it as `error_uri`. */
export function isDocumentedError(code: string): code is DocumentedError {
  return Object.hasOwn(texts, code);
}

export function errorReference(code: DocumentedError, lifetimes: Lifetimes): ErrorReferenceView {
  const { causes, ...about }: ErrorText = texts[code];
  const told = causes.map(({ cause, remedy }) => ({
    cause: typeof cause === 'string' ? cause : cause(lifetimes),
    remedy,
  }));
  return { code, ...about, causes: told };
}

export function errorReferencePage({ host, lifetimes }: PageParts): Route[] {
  async function index(ctx: Context): Promise<void> {
    await host.render(ctx, 'error-reference-index', {
      title: 'Error reference',
      errors: documentedErrors.map((code) => errorReference(code, lifetimes)),
    });
  }

  /** Leaves an unknown code to be Koa's 404. */
  async function show(ctx: Context): Promise<void> {
    const code = String(ctx.params.code);
    if (!isDocumentedError(code)) return;
    await host.render(ctx, 'error-reference', errorReference(code, lifetimes));
  }

  return [get('/errors', index), get('/errors/:code', show)];
}
