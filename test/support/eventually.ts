/** Waiting for what another part does by itself a moment later, such as hearing of a change. */
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds, for a machine that is slow or busy: what it waits for takes one of a thousand. */
const PATIENCE = 30_000;

// Not Date.now, and not as it may be later: a test may have stopped either clock.
const now = performance.now.bind(performance);

/** Repeats the check until it no longer throws. @throws what it threw last, when patience ends. */
export async function eventually<Result>(check: () => Promise<Result> | Result): Promise<Result> {
  const deadline = now() + PATIENCE;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (now() > deadline) throw error;
      await delay(10);
    }
  }
}
