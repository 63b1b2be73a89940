/** The kinds of settings: how each parses a value, and the message about a wrong value. */
import { z } from 'zod';

export interface Expectation {
  /** The accepted values, as the end of a message that begins with "is not". */
  readonly accepts: string;
  /** An example of a valid value, which follows "write" in the remedy for an invalid value. */
  readonly example: string;
  /** In code, the setting's name ends with this unit. In the settings file, the value contains a unit (`10m`). */
  readonly unit?: 'Seconds';
}

/** What each kind of setting accepts, for the message about a refused value. */
export const expectations = z.registry<Expectation>();

/** A branded number of seconds. `InCode` in settings.ts uses the brand to append the unit to the setting's name. */
export type Seconds = number & z.core.$brand<'seconds'>;

/** Parses a duration such as `10m` into seconds. @param from the shortest allowed duration @param to the longest */
export function duration(from: string, to: string) {
  const example = durationSeconds(from) <= 600 && durationSeconds(to) >= 600 ? '10m' : from;
  return z
    .string()
    .regex(durationPattern)
    .transform(durationSeconds)
    .pipe(z.number().min(durationSeconds(from)).max(durationSeconds(to)).brand<'seconds'>())
    .register(expectations, {
      unit: 'Seconds',
      accepts: `a duration from ${from} to ${to}`,
      example: `a whole number and a unit (s, m, h or d), such as \`${example === '0s' ? to : example}\``,
    });
}

/** Like `duration`, but also accepts `off`, which becomes undefined. */
export function durationOrOff(from: string, to: string) {
  return z.union([z.literal('off').transform(() => undefined), duration(from, to)]).register(expectations, {
    unit: 'Seconds',
    accepts: `a duration from ${from} to ${to}, or off`,
    example: 'a whole number and a unit (s, m, h or d), such as `365d`, or `off`',
  });
}

export function wholeNumber(from: number, to: number) {
  return z
    .int()
    .min(from)
    .max(to)
    .register(expectations, {
      accepts: `a whole number from ${from} to ${to}`,
      example: `a number from ${from} to ${to}, without a unit`,
    });
}

/** False for `08080`, `0x1F90` and `1e3`: programs differ in how they read these. */
export const isPlainNumber = (text: string): boolean => /^-?(?:0|[1-9]\d*)$/.test(text);

/** A percentage or a whole number, returned as the text that the file contains. */
export function shareOrNumber() {
  const number = z.int().min(0).max(MAX_NUMBER).transform(String);
  return z.union([z.string().regex(SHARE_OR_NUMBER), number]).register(expectations, {
    accepts: 'a percentage or a whole number',
    example: 'a percentage from 0% to 100%, such as `10%`, or a number, such as `20`',
  });
}

const MAX_NUMBER = 999_999_999;
const SHARE_OR_NUMBER = /^(?:(?:100|[1-9]?\d)%|0|[1-9]\d{0,8})$/;

/** True for a percentage from `0%` to `100%`, and for a whole number. */
export const isShareOrNumber = (text: string): boolean => SHARE_OR_NUMBER.test(text);

export function flag() {
  return z.boolean().register(expectations, {
    accepts: 'true or false',
    example: '`true` or `false`',
  });
}

export function oneOf<const Word extends string>(words: readonly Word[]) {
  return z.enum(words).register(expectations, {
    accepts: `one of ${words.join(', ')}`,
    example: words.map((word) => `\`${word}\``).join(' or '),
  });
}

/** The schema for non-blank texts. `isValid` gets the trimmed text; `expectation.accepts` describes valid texts. */
export function text(expectation: Expectation, isValid: (value: string) => boolean = () => true) {
  return z.string().trim().regex(/\S/).refine(isValid).register(expectations, expectation);
}

/** A duration in the settings file: a whole number and a unit, such as `10m` or `30d`. */
const durationPattern = /^(?:0|[1-9]\d{0,8})[smhd]$/;

const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Returns the seconds of a text that matches `durationPattern`; NaN for any other text. A number without a unit is a
 * mistake, which must be reported.
 */
export function durationSeconds(text: string): number {
  if (!durationPattern.test(text)) return Number.NaN;
  return Number(text.slice(0, -1)) * (secondsIn[text.slice(-1)] ?? Number.NaN);
}

/** Returns the duration with the largest unit that gives a whole number. */
export function durationText(seconds: number): string {
  const units = Object.entries(secondsIn);
  const [unit, size] = units.findLast(([, length]) => seconds >= length && seconds % length === 0) ?? ['s', 1];
  return `${seconds / size}${unit}`;
}
