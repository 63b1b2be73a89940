/** Waiting for what another part does by itself a moment later, such as hearing of a change. */
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds, for a machine that is slow or busy: what it waits for takes one of a thousand. */
const PATIENCE = 30_000;

/** Repeats the check until it no longer throws. @throws what it threw last, when patience ends. */
export async function eventually<Result>(check: () => Promise<Result> | Result): Promise<Result> {
  // Not Date.now: a test may have stopped that clock.
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(10);
    }
  }
}
