/** Waits for something that happens in the background, such as the notification of a change. */
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './timeout-factor.ts';

// Keep this function now: a test may later replace `performance.now`, and it may stop `Date.now`.
const now = performance.now.bind(performance);

/** Repeats the check until it no longer throws. @throws its last error after the timeout */
export async function eventually<Result>(check: () => Promise<Result> | Result): Promise<Result> {
  const deadline = now() + PATIENCE_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (now() > deadline) throw error;
      await delay(10);
    }
  }
}
