/** Waits for failures, with a time limit, in tests of an unavailable store. */
import { expect } from 'chai';
import { ticksOf } from '../support/stopwatch.ts';

/** Maximum milliseconds that a request may take while a store is unavailable. */
export const LIMIT = 2_500;

/** Returns the error that the work failed with; undefined if it succeeded. */
export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Like `failureOf`, and checks that the work ends within the time that a request may take. */
export async function withinLimit(work: Promise<unknown>): Promise<unknown> {
  const error = failureOf(work);
  expect(await ticksOf(error), 'milliseconds').to.be.below(LIMIT);
  return error;
}
