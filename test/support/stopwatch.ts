/** Measures durations and work in this process, regardless of how slow or busy the machine is. */
import { createHook } from 'node:async_hooks';

const TICK_MS = 10;

/**
 * Returns the milliseconds until `work` settled, counted in ticks of this process. While the process cannot run or is
 * too busy, no tick passes, and no timer of the service under test fires. So a working timeout is never exceeded,
 * however slow the machine, and a missing timeout is still noticed.
 */
export async function ticksOf(work: Promise<unknown>): Promise<number> {
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, TICK_MS);
  await work.then(ignore, ignore);
  clearInterval(timer);
  return ticks * TICK_MS;
}

const ignore = (): void => {};

/** Returns the processor time of `task` in microseconds, which does not depend on other programs. */
export async function workOf(task: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await task();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Returns how many times `task` hashed a password, on threads of libuv: Node shows each of these as a resource. */
export async function hashesOf(task: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init(_, type) {
      // The package of Argon2 gives its work no name.
      if (type === 'undefined') count += 1;
    },
  }).enable();
  await task().finally(() => hook.disable());
  return count;
}

/**
 * Starts to measure a window that begins at the next attempt.
 *
 * @returns a function that returns the seconds that certainly remain (fewer on a slow machine)
 */
export function windowOf(seconds: number): () => number {
  const begin = performance.now();
  return () => seconds - 1 - Math.ceil((performance.now() - begin) / 1_000);
}
