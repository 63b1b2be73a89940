/** The clock that every part of the service receives, so that tests can move it instead of sleeping. */

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** Reads `Date.now` at each call, because a test may replace it. */
export const systemClock: Clock = () => Date.now();

/** Whole seconds since the epoch, the unit of `exp` and `iat` (RFC 7519 §2, NumericDate). */
export const epochSeconds = (clock: Clock): number => Math.floor(clock() / 1000);
