/** Parses arguments, and reads secrets from files or standard input: other users of the machine can see arguments. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { durationSeconds, isShareOrNumber } from '../../config/schema/kinds.ts';
import type { Surroundings } from './operator.ts';

/** Thrown for options that conflict or need other options, which commander does not check. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

/** Makes a command fail with the sentence `missing`, before it opens a store, if none of the options is given. */
export const needsOneOf = (command: Command, options: readonly string[], missing: string): Command =>
  command.hook('preAction', (found) => {
    if (options.every((name) => found.getOptionValueSource(name) !== 'cli')) throw new WrongUsage(missing);
  });

/** @throws InvalidArgumentError unless the text is a whole number from 1 to `max` */
export const wholeNumber =
  (max: number) =>
  (given: string): number => {
    const value = Number(given);
    if (/^\d+$/.test(given) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`Write a whole number from 1 to ${max}.`);
  };

/** @throws InvalidArgumentError unless the text is a percentage or a whole number */
export function shareOrNumber(given: string): string {
  if (isShareOrNumber(given)) return given;
  throw new InvalidArgumentError('Write a percentage, such as 5%, or a whole number.');
}

/** Parses an ISO 8601 time (UTC by default), or a duration such as `7d`, which means seven days ago. */
export function parseTime(given: string): Date {
  const seconds = durationSeconds(given);
  if (!Number.isNaN(seconds)) return new Date(systemClock() - seconds * 1000);
  const [, day, rest] = /^(\d{4}-\d{2}-\d{2})(?:[T ](.+))?$/.exec(given) ?? [];
  const zoned = rest && !/(Z|[+-]\d{2}:?\d{2})$/.test(rest) ? `${rest}Z` : rest;
  const parsed = new Date(day && zoned ? `${day}T${zoned}` : (day ?? Number.NaN));
  if (!Number.isNaN(parsed.getTime())) return parsed;
  throw new InvalidArgumentError('Write 7d, 12h, 30m, or a time like 2026-01-31T08:00Z.');
}

export const STANDARD_INPUT_IS_SAFER =
  'Arguments are stored in the shell history and visible in the list of processes: better ' +
  'pass - and the\nvalue on standard input, or type it when asked.';

type Terminal = Pick<Surroundings, 'stdin' | 'stderr'>;

/** @param argument the token, or `-` to read standard input; on a terminal, `question` is printed first */
export async function readToken(argument: string, terminal: Terminal, question = 'Token (hidden): '): Promise<string> {
  if (argument !== '-') return argument;
  if (!terminal.stdin.isTTY) return withoutLineEnd(await text(terminal.stdin));
  return prompting(terminal, { isHidden: true }, (ask) => ask(question));
}

/** Does not repeat the name of the file in an error: it may be a secret, given instead of a file. @throws WrongUsage */
export const readGiven = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
    throw new WrongUsage(`the file cannot be read (${code})`);
  });

export interface PasswordOptions {
  readonly passwordFile?: string;
  readonly generatePassword?: true;
}

/** Reads or generates a password. The caller must print a generated password. */
export async function readPassword(
  { passwordFile: file, generatePassword }: PasswordOptions,
  terminal: Terminal,
): Promise<{ readonly password: string; readonly isGenerated: boolean }> {
  // 24 characters have 144 random bits, and can still be read aloud.
  if (generatePassword) return { password: randomId('', 24), isGenerated: true };
  const isTyped = file === undefined && terminal.stdin.isTTY;
  const read = async () => withoutLineEnd(await (file === undefined ? text(terminal.stdin) : readGiven(file)));
  const password = isTyped ? await promptTwice(terminal) : await read();
  if (password !== '') return { password, isGenerated: false };
  throw new WrongUsage(
    'no password was given: pass it on standard input, with --password-file or with --generate-password',
  );
}

/** Removes a final line break, but no spaces, because a password may end in a space. */
const withoutLineEnd = (content: string): string => content.replace(/\r?\n$/, '');

const promptTwice = (terminal: Terminal): Promise<string> =>
  prompting(terminal, { isHidden: true }, async (ask) => {
    const password = await ask('Password: ');
    if (password === (await ask('Repeat it: '))) return password;
    throw new WrongUsage('the two passwords do not match');
  });

/**
 * Calls `work` with a function that asks one question on the terminal. If `isHidden`, the typed text is not shown.
 *
 * @throws WrongUsage if the terminal is closed before an answer, for example by Ctrl-C
 */
export async function prompting<Result>(
  { stdin, stderr }: Terminal,
  { isHidden }: { readonly isHidden: boolean },
  work: (ask: (question: string) => Promise<string>) => Promise<Result>,
): Promise<Result> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isHidden ? { output: unseen, terminal: true } : { output: stderr };
  const terminal = createInterface({ input: stdin, ...output });
  const ended = new Promise<never>((_, reject) => {
    terminal.once('close', () => reject(new WrongUsage('nothing was entered')));
  });
  ended.catch(() => {});
  try {
    return await work(async (question) => {
      if (isHidden) stderr.write(question);
      const answer = await Promise.race([terminal.question(isHidden ? '' : question), ended]);
      if (isHidden) stderr.write('\n');
      return answer;
    });
  } finally {
    terminal.close();
  }
}
