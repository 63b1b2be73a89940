/** How the tests of a store in trouble wait for a failure in time. */
import { expect } from 'chai';
import { ticksOf } from '../support/stopwatch.ts';

/** The most milliseconds that a request may take while a store is away. */
export const LIMIT = 2_500;

/** What the work failed with; undefined when it did not. */
export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

/** The same, of a call that must come to its end within the time that a request may take. */
export async function withinLimit(work: Promise<unknown>): Promise<unknown> {
  const error = failureOf(work);
  expect(await ticksOf(error), 'milliseconds').to.be.below(LIMIT);
  return error;
}
