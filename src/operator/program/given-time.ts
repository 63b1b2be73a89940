/** A point in time as an operator writes it. */
import { InvalidArgumentError } from 'commander';
import { systemClock } from '../../clock.ts';
import { durationSeconds } from '../../config/durations.ts';

/**
 * A duration is that long ago; anything else is a time by the ISO calendar, in UTC without a zone.
 *
 * @throws InvalidArgumentError
 */
export function givenTime(text: string): Date {
  const seconds = durationSeconds(text);
  if (!Number.isNaN(seconds)) return new Date(systemClock() - seconds * 1000);
  const [, day, rest] = /^(\d{4}-\d{2}-\d{2})(?:[T ](.+))?$/.exec(text) ?? [];
  const zoned = rest && !/(Z|[+-]\d{2}:?\d{2})$/.test(rest) ? `${rest}Z` : rest;
  const parsed = new Date(day && zoned ? `${day}T${zoned}` : (day ?? Number.NaN));
  if (!Number.isNaN(parsed.getTime())) return parsed;
  throw new InvalidArgumentError('Write 7d, 12h, 30m, or a time like 2026-01-31T08:00Z.');
}
