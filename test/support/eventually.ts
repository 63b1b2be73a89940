/** Waits for what another part does by itself a moment later, such as receiving a change. */
import { setTimeout as delay } from 'node:timers/promises';

/** For slow or busy machines: usually a thousandth of it is needed. */
const TIMEOUT_MS = 30_000;

// Not Date.now, and bound at once: a test may stop either clock later.
const now = performance.now.bind(performance);

/** Repeats the check until it no longer throws. @throws its last error after the timeout */
export async function eventually<Result>(check: () => Promise<Result> | Result): Promise<Result> {
  const deadline = now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (now() > deadline) throw error;
      await delay(10);
    }
  }
}
