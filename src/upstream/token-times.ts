/** Checks the times in a provider's tokens, with a tolerance for clock differences and a maximum lifetime. */
import { type Clock, epochSeconds } from '../base/clock.ts';

export const CLOCK_TOLERANCE_SECONDS = 60;

/**
 * @throws Error for a token from the future or with an `exp` more than `maxLifetimeSeconds` from
 *   now: the provider has a wrong clock, or the token is meant for longer use
 */
export function requireShortLife(
  { iat, exp }: { readonly iat?: number | undefined; readonly exp?: number | undefined },
  clock: Clock,
  maxLifetimeSeconds: number,
): void {
  const latest = epochSeconds(clock) + CLOCK_TOLERANCE_SECONDS;
  // Use a negated comparison, so that a missing or unusual number is refused as well.
  if (!(Number(iat) <= latest)) throw new Error('the iat of the token is in the future');
  if (!(Number(exp) <= latest + maxLifetimeSeconds)) {
    throw new Error(`the exp of the token is more than ${maxLifetimeSeconds} seconds from now`);
  }
}
