/** Asserts that an answer is an OAuth error. */
import { expect } from 'chai';
import type { Answer } from '../support/oauth.ts';

/** @param cause the whole `error_description`, if the test is about it */
export function expectRefusal(answer: Answer, status: number, error: string, cause?: string): void {
  const { body, text } = answer;
  const seen = { status: answer.status, error: body.error, cause: body.error_description };
  expect(seen, text).to.include({ status, error, ...(cause !== undefined && { cause }) });
}
