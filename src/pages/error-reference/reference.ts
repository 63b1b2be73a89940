/** The public page about each OAuth error we answer, written for the developer of a client. */

import type { ErrorReferenceView } from '../view-data.ts';
import { authorizationErrorTexts } from './authorization-texts.ts';
import type { ErrorText, Lifetimes } from './text.ts';
import { tokenErrorTexts } from './token-texts.ts';

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
