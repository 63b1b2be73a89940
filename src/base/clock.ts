/** The time, passed to every part that needs it, so that tests move it instead of sleeping. */

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** Looks `Date.now` up at each call, so that whoever replaces it (a test) moves this clock as well. */
export const systemClock: Clock = () => Date.now();

/** Whole seconds since the epoch, the unit of `exp` and `iat` (RFC 7519 §2, NumericDate). */
export const epochSeconds = (clock: Clock): number => Math.floor(clock() / 1000);
