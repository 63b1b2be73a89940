/** Time that a test moves. */
import type { Clock } from '../../src/base/clock.ts';

export interface TestClock {
  /** What the parts of the service are given as their clock. */
  readonly clock: Clock;
  advance(seconds: number): void;
  set(time: Date): void;
  /** Gives the real time back; without it every later suite lives in this one's time. */
  restore(): void;
}

/**
 * A clock that stands still until it is moved.
 *
 * It also takes the place of `Date.now`, which oidc-provider reads directly: its idea of expiry
 * must move with ours. Timers (a pool's time limits, Redis' own expiry) go on in real time, so a
 * start near the present keeps Redis from dropping what the moved clock still calls alive.
 */
export function createTestClock(startAt: Date = new Date(realNow())): TestClock {
  let now = Math.floor(startAt.getTime() / 1000) * 1000;
  const clock: Clock = () => now;
  Date.now = clock;
  return {
    clock,
    advance(seconds) {
      now += seconds * 1000;
    },
    set(time) {
      now = time.getTime();
    },
    restore() {
      Date.now = realNow;
    },
  };
}

/** Time passes ten times as fast, for what waits by `Date.now`. @returns what gives the real time back. */
export function hurryTime(): () => void {
  const begun = realNow();
  Date.now = () => begun + (realNow() - begun) * 10;
  return () => {
    Date.now = realNow;
  };
}

/** What the stores' clocks say, wherever a test has moved ours. */
export const realNow = Date.now;
