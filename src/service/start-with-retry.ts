/** Repeats a start while stores are unavailable, as when all machines start after a power cut. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Trouble, troubleOf } from './startup-errors.ts';

const TIMEOUT_MS = 60_000;
const PAUSE_MS = 1_000;
const REPORT_INTERVAL_MS = 5_000;

/**
 * Calls `start`, and repeats it while a store is unavailable. Other failures, such as a wrong password or an unknown
 * database, are thrown immediately.
 * @param start must leave nothing open if it fails
 * @param report called with the failure, and with the number of seconds for which retries continue
 * @param time `now` returns monotonic milliseconds; `pause` waits before a retry
 * @throws the error of the last attempt
 */
export async function startWithRetry<Started>(
  start: () => Promise<Started>,
  report: (trouble: Trouble, secondsLeft: number) => void,
  { now = () => performance.now(), pause = (milliseconds: number): Promise<unknown> => delay(milliseconds) } = {},
): Promise<Started> {
  const end = now() + TIMEOUT_MS;
  let reportedAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const trouble = troubleOf(error);
      const left = end - now();
      if (!trouble?.mayPass || left <= 0) throw error;
      if (now() - reportedAt >= REPORT_INTERVAL_MS) {
        reportedAt = now();
        report(trouble, Math.round(left / 1_000));
      }
      await pause(PAUSE_MS);
    }
  }
}
