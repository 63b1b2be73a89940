/** A time as pages print it: for people in words, for programs in ISO 8601. */

export interface Moment {
  /** For the `datetime` attribute. */
  readonly iso: string;
  /** `21 Nov 2026, 04:23 UTC` */
  readonly text: string;
}

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

/** To the minute, and always in UTC: where the person is, the server does not know. */
export function momentOf(time: Date): Moment {
  const iso = time.toISOString();
  return { iso, text: `${DAY.format(time)}, ${iso.slice(11, 16)} UTC` };
}

/** `04:23:10 UTC`, for a list that begins anew each time it is looked at. */
export const timeOfDay = (time: Date): string => `${time.toISOString().slice(11, 19)} UTC`;

/** Of a time that may not have come, such as a first use. */
export const momentOrNothing = (time: Date | null | undefined): Moment | undefined =>
  time ? momentOf(time) : undefined;

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** `30 days`, `1 hour`, `90 seconds`: in the largest unit that leaves nothing over. */
export function durationText(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds % size === 0) ?? ['second', 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
