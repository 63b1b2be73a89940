/** The public page about each OAuth error we answer, written for the developer of a client. */
import { authorizationErrorTexts } from './authorization-error-texts.ts';
import { tokenErrorTexts } from './token-error-texts.ts';
import type { ErrorReferenceView } from './view-data.ts';

export interface ErrorReference extends ErrorReferenceView {
  readonly code: DocumentedError;
}

export type DocumentedError = keyof typeof texts;

/** Whether `/errors/<code>` exists, so that an answer may carry it as `error_uri`. */
export function isDocumentedError(code: string): code is DocumentedError {
  return Object.hasOwn(texts, code);
}

export function errorReference(code: DocumentedError): ErrorReference {
  return { code, ...texts[code] };
}

/** All of them, in the order a developer meets them. */
export function errorReferences(): ErrorReference[] {
  return Object.keys(texts).filter(isDocumentedError).map(errorReference);
}

const texts = { ...tokenErrorTexts, ...authorizationErrorTexts };
