/** Counts failed attempts, so that guessing a secret or a password stops being worth it. */
import { RateLimiterMemory } from 'rate-limiter-flexible';

export interface AttemptLimit {
  /** Seconds until the next attempt is looked at, or undefined when it may be now. */
  secondsUntilAllowed(key: string): Promise<number | undefined>;
  recordFailure(key: string): Promise<void>;
  /** Counts an attempt in one atomic step. @returns whether it was still allowed. */
  isAllowed(key: string): Promise<boolean>;
  /** After a success: earlier failures were honest mistakes. */
  forget(key: string): Promise<void>;
}

/**
 * Allows `failures` failed attempts per key in each window. Kept in the memory of this process.
 *
 * The key names both sides (who is asked for, from which address), so that a stranger's failures
 * lock out neither a client nor a person elsewhere.
 */
export function createAttemptLimit({
  failures,
  windowSeconds,
}: {
  failures: number;
  windowSeconds: number;
}): AttemptLimit {
  const limiter = new RateLimiterMemory({ points: failures, duration: windowSeconds });
  return {
    async secondsUntilAllowed(key) {
      const state = await limiter.get(key);
      // What is over is kept until a timer drops it, and the timer may come late.
      if (!state || state.consumedPoints < failures || state.msBeforeNext <= 0) return undefined;
      return Math.ceil(state.msBeforeNext / 1000);
    },
    async recordFailure(key) {
      // Rejects when the limit is reached, which the next question will find out.
      await limiter.consume(key).catch(() => {});
    },
    async isAllowed(key) {
      return limiter.consume(key).then(
        () => true,
        () => false,
      );
    },
    async forget(key) {
      await limiter.delete(key);
    },
  };
}
