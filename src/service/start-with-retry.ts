/** A start that waits for its stores: after a power cut everything on a machine starts at once. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Trouble, troubleOf } from './startup-errors.ts';

/** In milliseconds: how long a start waits, how often it tries, and how often it says so. */
const PATIENCE = 60_000;
const PAUSE = 1_000;
const SILENCE = 5_000;

/**
 * Starts, and tries again as long as a store is away. What does not pass by itself (a wrong
 * password, an unknown database) is refused at once.
 *
 * @param start leaves nothing open where it fails.
 * @param tell is told what is waited for, and the seconds for which that goes on.
 * @param time milliseconds that only go forward, and a pause of so many.
 * @throws what the last attempt was refused with.
 */
export async function startPatiently<Started>(
  start: () => Promise<Started>,
  tell: (trouble: Trouble, secondsLeft: number) => void,
  { now, pause }: Time = { now: () => performance.now(), pause: delay },
): Promise<Started> {
  const end = now() + PATIENCE;
  let spokenAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const trouble = troubleOf(error);
      const left = end - now();
      if (!trouble?.mayPass || left <= 0) throw error;
      if (now() - spokenAt >= SILENCE) {
        spokenAt = now();
        tell(trouble, Math.round(left / 1_000));
      }
      await pause(PAUSE);
    }
  }
}

interface Time {
  readonly now: () => number;
  readonly pause: (milliseconds: number) => Promise<unknown>;
}
