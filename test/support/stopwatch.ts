/** How long something of this process took, where a machine that is slow or busy does not count. */

/** Milliseconds between two ticks. */
const TICK = 10;

/**
 * Milliseconds until `work` ended, in whatever way, counted in ticks of this process: while it does
 * not get to run, or has too much to do, no tick passes, as no timer of the service under test does.
 * So a limit that holds is not exceeded on any machine, and one that is missing still is.
 */
export async function ticksOf(work: Promise<unknown>): Promise<number> {
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, TICK);
  await work.then(ignore, ignore);
  clearInterval(timer);
  return ticks * TICK;
}

const ignore = (): void => {};

/** Processor time, not time: what other programs do meanwhile does not count. Microseconds. */
export async function workOf(task: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await task();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/**
 * Begins to measure a window that begins at the next attempt.
 *
 * @returns what of it is left at least: on a slow machine less than on a fast one.
 */
export function windowOf(seconds: number): () => number {
  const begin = performance.now();
  return () => seconds - 1 - Math.ceil((performance.now() - begin) / 1_000);
}
