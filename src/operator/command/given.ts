/** What is given on a command line, and what better is not: secrets, which others could see there. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { InvalidArgumentError } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { durationSeconds, isShareOrNumber } from '../../config/schema/kinds.ts';
import type { Surroundings } from './operator.ts';

/** Options that do not go together, or say nothing: found after commander looked at each. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

/** @throws InvalidArgumentError for anything but a number from 1 to `most`. */
export const wholeNumber =
  (most: number) =>
  (given: string): number => {
    const value = Number(given);
    if (/^\d+$/.test(given) && value >= 1 && value <= most) return value;
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`);
  };

/** @throws InvalidArgumentError for anything but a percentage or a whole number. */
export function shareOrNumber(given: string): string {
  if (isShareOrNumber(given)) return given;
  throw new InvalidArgumentError('Write a percentage, such as 5%, or a whole number.');
}

/**
 * A duration is that long ago; anything else is a time by the ISO calendar, in UTC without a zone.
 *
 * @throws InvalidArgumentError
 */
export function givenTime(given: string): Date {
  const seconds = durationSeconds(given);
  if (!Number.isNaN(seconds)) return new Date(systemClock() - seconds * 1000);
  const [, day, rest] = /^(\d{4}-\d{2}-\d{2})(?:[T ](.+))?$/.exec(given) ?? [];
  const zoned = rest && !/(Z|[+-]\d{2}:?\d{2})$/.test(rest) ? `${rest}Z` : rest;
  const parsed = new Date(day && zoned ? `${day}T${zoned}` : (day ?? Number.NaN));
  if (!Number.isNaN(parsed.getTime())) return parsed;
  throw new InvalidArgumentError('Write 7d, 12h, 30m, or a time like 2026-01-31T08:00Z.');
}

/** For the help of commands that take a token. */
export const STANDARD_INPUT_IS_SAFER =
  'An argument stands in the shell history and in the list of processes: better give - and the\n' +
  'value on standard input, or type it where it is asked for.';

type Terminal = Pick<Surroundings, 'stdin' | 'stderr'>;

/** @param argument `-` for standard input, which is asked for where that is a terminal. */
export async function givenToken(argument: string, terminal: Terminal): Promise<string> {
  if (argument !== '-') return argument;
  if (!terminal.stdin.isTTY) return withoutLineEnd(await text(terminal.stdin));
  return askingHidden(terminal, 'no token was typed', (ask) => ask('Token (not shown): '));
}

export interface PasswordOptions {
  readonly passwordFile?: string;
  readonly generatePassword?: true;
}

/** The password, and whether it was made here and must therefore be shown. */
export async function givenPassword(
  { passwordFile: file, generatePassword }: PasswordOptions,
  terminal: Terminal,
): Promise<{ readonly password: string; readonly isGenerated: boolean }> {
  // 144 bits, short enough to be read out.
  if (generatePassword) return { password: randomId('', 24), isGenerated: true };
  const read = async (): Promise<string> => {
    if (file === undefined) return text(terminal.stdin);
    return readFile(file, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
      throw new WrongUsage(`the password file ${file} cannot be read (${code})`);
    });
  };
  const isTyped = file === undefined && terminal.stdin.isTTY;
  const password = isTyped ? await typedTwice(terminal) : withoutLineEnd(await read());
  if (password !== '') return { password, isGenerated: false };
  throw new WrongUsage(
    'there is no password: give it on standard input, with --password-file or with ' +
      '--generate-password',
  );
}

/** Spaces belong to a password; the end of the line it was written on does not. */
const withoutLineEnd = (content: string): string => content.replace(/\r?\n$/, '');

const typedTwice = (terminal: Terminal): Promise<string> =>
  askingHidden(terminal, 'no password was typed', async (ask) => {
    const password = await ask('Password: ');
    if (password === (await ask('The same again: '))) return password;
    throw new WrongUsage('the two passwords differ');
  });

/**
 * Asks on the terminal, without showing what is typed.
 *
 * @param work is given what asks one question after the other.
 * @throws WrongUsage where the terminal is closed in place of an answer, which says `missing`.
 */
async function askingHidden<Result>(
  { stdin, stderr }: Terminal,
  missing: string,
  work: (ask: (question: string) => Promise<string>) => Promise<Result>,
): Promise<Result> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: stdin, output: unseen, terminal: true });
  const ended = new Promise<never>((_, reject) => {
    terminal.once('close', () => reject(new WrongUsage(missing)));
  });
  ended.catch(() => {});
  try {
    return await work(async (question) => {
      stderr.write(question);
      const answer = await Promise.race([terminal.question(''), ended]);
      stderr.write('\n');
      return answer;
    });
  } finally {
    terminal.close();
  }
}
