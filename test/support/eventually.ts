/** Waits for something that happens in the background, such as the notification of a change. */
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './timeout-factor.ts';

// Keep this function now: a test may later replace `performance.now`, and it may stop `Date.now`.
const now = performance.now.bind(performance);

/** Repeats the check until it no longer throws. @throws its last error after the timeout */
export async function eventually<Result>(check: () => Promise<Result> | Result): Promise<Result> {
  const begun = now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const waited = now() - begun;
      if (waited > PATIENCE_MS) throw error;
      // Ask less often what takes longer: each question is work for the machine for which the test waits.
      await delay(Math.min(Math.max(10, waited / 20), 100));
    }
  }
}
