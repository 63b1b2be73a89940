/** `--out`: writes the secret that a command makes into a file that only its owner may read. */
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { type Command, Option } from 'commander';
import { WrongUsage } from './arguments.ts';
import type { Report } from './operator.ts';

/** Adds `--out` to a command whose report has a `secret`. */
export const addOutOption = (command: Command): Command =>
  command.addOption(
    new Option('--out <file>', 'write the secret into this new file (mode 0600) instead of printing it'),
  );

/** Longer than any secret: the file has this size before the secret is made, so that the disk has room for it. */
const RESERVED_BYTES = 4096;

/**
 * Creates the file before the command changes anything, so that no secret is made that cannot be written.
 *
 * @param warn called if there is nothing to write, or if the secret is printed after all
 * @throws WrongUsage also if the file exists: other users may be able to read it
 */
export function createSecretFile(file: string, warn: (sentence: string) => void) {
  const descriptor = create(file);
  let isWritten = false;
  let wasMade = false;
  return {
    /** Returns the report without the secret, which the file has then; the whole report if it cannot be written. */
    take(report: Report): Report {
      const { secret, text } = report;
      if (secret === undefined) {
        if (!report.exitCode && !wasMade) warn(`No secret was made, so ${file} was not written.`);
        return report;
      }
      wasMade = true;
      try {
        ftruncateSync(descriptor, writeSync(descriptor, `${secret}\n`, 0));
        fsyncSync(descriptor);
      } catch (error) {
        warn(`${file} could not be written (${(error as NodeJS.ErrnoException).code}). Keep the secret from here:`);
        return report;
      }
      isWritten = true;
      const lines = text.split('\n').filter((line) => !line.includes(secret));
      const withoutSecret = (_name: string, value: unknown) => (value === secret ? undefined : value);
      return {
        ...report,
        value: JSON.parse(JSON.stringify(report.value, withoutSecret)),
        text: [...lines, `The secret is in ${file}, which only its owner may read.`].join('\n'),
      };
    },
    /** Removes the file if no secret was made. */
    close(): void {
      closeSync(descriptor);
      if (!isWritten) rmSync(file, { force: true });
    },
  };
}

function create(file: string): number {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'wx', 0o600);
    writeFileSync(descriptor, BLANK);
    fsyncSync(descriptor);
    return descriptor;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (descriptor !== undefined) {
      closeSync(descriptor);
      rmSync(file, { force: true });
    }
    throw new WrongUsage(code === 'EEXIST' ? whyNot(file) : `${file} cannot be written (${code}): ${ELSEWHERE}`);
  }
}

const BLANK = ' '.repeat(RESERVED_BYTES);
const ELSEWHERE = 'name a file in a folder with space where this user may write';

/** A command that was interrupted leaves blanks, but so does one that is still running. */
function whyNot(file: string): string {
  return isBlank(file)
    ? `${file} is blank: a command is running that will write it, or was interrupted; if none is running, remove it`
    : `${file} exists: name a new file, because other users might read this one, or it might hold a key in use`;
}

/** False for what cannot be read, such as a folder or a dangling link. */
function isBlank(file: string): boolean {
  try {
    return statSync(file).size === RESERVED_BYTES && readFileSync(file, 'utf8') === BLANK;
  } catch {
    return false;
  }
}
