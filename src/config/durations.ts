/** Durations as an operator writes them: a whole number and its unit, such as `10m` or `30d`. */

export const durationPattern = /^\d{1,9}[smhd]$/;

const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Seconds of a text that matches `durationPattern`; NaN for any other text, because a number
 * without a unit is a mistake to report, never a guess.
 */
export function durationSeconds(text: string): number {
  if (!durationPattern.test(text)) return Number.NaN;
  return Number(text.slice(0, -1)) * (secondsIn[text.slice(-1)] ?? Number.NaN);
}
