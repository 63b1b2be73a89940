/** Times in the tokens of a provider: how much its clock may differ, how long a token may live. */
import { type Clock, epochSeconds } from '../base/clock.ts';

export const CLOCK_TOLERANCE_SECONDS = 60;

/**
 * @throws Error for a token from the future or with an `exp` later than `maxLifetimeSeconds` from
 *   now: its provider has a wrong clock, or means it to be used far longer than this once
 */
export function requireShortLife(
  { iat, exp }: { readonly iat?: number | undefined; readonly exp?: number | undefined },
  clock: Clock,
  maxLifetimeSeconds: number,
): void {
  const latest = epochSeconds(clock) + CLOCK_TOLERANCE_SECONDS;
  // Negated, so that a missing or unusual number is refused as well.
  if (!(Number(iat) <= latest)) throw new Error('its iat is in the future');
  if (!(Number(exp) <= latest + maxLifetimeSeconds)) {
    throw new Error(`its exp is more than ${maxLifetimeSeconds} seconds from now`);
  }
}
