/** Times and durations as pages print them. */
import { type Message, message } from '../../base/message.ts';

export interface Moment {
  /** The value of the HTML attribute `datetime`. */
  readonly iso: string;
  /** For example `21 Nov 2026, 04:23 UTC`. */
  readonly text: string;
}

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

/** The text is in UTC, because the server does not know the user's time zone. */
export function toMoment(time: Date): Moment {
  const iso = time.toISOString();
  return { iso, text: `${DAY.format(time)}, ${iso.slice(11, 16)} UTC` };
}

export const momentOrNothing = (time: Date | null | undefined): Moment | undefined =>
  time ? toMoment(time) : undefined;

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** Converts seconds to the largest unit without a remainder: `{ count: 30, unit: 'day' }`. */
export function inUnits(seconds: number) {
  const [unit, size] = UNITS.find(([, size]) => seconds % size === 0) ?? (['second', 1] as const);
  return { count: seconds / size, unit };
}

/** Returns a text such as `30 days` or `90 seconds`. */
export const durationOf = (seconds: number): Message => message('common.duration', inUnits(seconds));
