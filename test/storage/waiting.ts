/** How the tests of a store in trouble wait: for a failure in time, for a recovery by itself. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';

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
  const begin = performance.now();
  const error = await failureOf(work);
  expect(performance.now() - begin, 'milliseconds').to.be.below(LIMIT);
  return error;
}

/** Repeats the check until it no longer throws, for what takes servers a while to agree on. */
export async function within(seconds: number, check: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + seconds * 1_000;
  for (;;) {
    const error = await failureOf(check());
    if (error === undefined) return;
    if (performance.now() > deadline) throw error;
    await delay(50);
  }
}
