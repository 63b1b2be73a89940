/** Clocks that stand still until a test moves them, or run faster. */
import type { Clock } from '../../src/base/clock.ts';

export interface TestClock {
  readonly clock: Clock;
  advance(seconds: number): void;
  set(time: Date): void;
  /** Restores the real time; without this call the time of this suite stays in force for every later suite. */
  restore(): void;
}

/**
 * Creates a clock that stands still until it is moved.
 *
 * It also replaces `Date.now`, which oidc-provider reads directly: its records must expire by the
 * same clock. Timers (a pool's timeouts, Redis' own expiry) keep running in real time: start near
 * the present, so that Redis does not drop records which have not expired by the moved clock.
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

/** Makes `Date.now` run ten times as fast. @returns a function that restores the real time */
export function hurryTime(): () => void {
  const startedAt = realNow();
  Date.now = () => startedAt + (realNow() - startedAt) * 10;
  return () => {
    Date.now = realNow;
  };
}

/** Returns the real time: that of the stores' clocks, even if a test has moved the clock of this process. */
export const realNow = Date.now;
