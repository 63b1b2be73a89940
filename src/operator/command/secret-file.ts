/** `--out`: writes the secret that a command makes into a file that only the operator may read. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { WrongUsage } from './arguments.ts';
import type { Report } from './operator.ts';
import { REFUSED } from './report.ts';

/** Use this for each command whose report may have a `secret`. */
export const addOutOption = (command: Command): Command =>
  command.addOption(
    new Option('--out <file>', 'write the secret into this new file (mode 0600) instead of printing it'),
  );

/**
 * Creates the file before the command changes anything: if the file cannot be created, no secret is made.
 *
 * @param warn called if there is nothing to write, or if the secret is printed because it cannot be written
 * @throws WrongUsage also if the file exists, because other users may be able to read it
 */
export function createSecretFile(file: string, warn: (sentence: string) => void) {
  const descriptor = create(file);
  let isWritten = false;
  let wasMade = false;
  return {
    /**
     * Writes the secret, and returns the report without the secret. If writing fails, the report still has the secret,
     * because the change was made, and its exit code is that of a failure, so that no script uses the file.
     */
    take(report: Report): Report {
      const { secret, text } = report;
      if (secret === undefined) {
        if (!report.exitCode && !wasMade) warn(`No secret was made, so ${file} was not written.`);
        return report;
      }
      wasMade = true;
      try {
        writeFileSync(descriptor, `${secret}\n`);
        fsyncSync(descriptor);
      } catch (error) {
        warn(`${file} could not be written (${(error as NodeJS.ErrnoException).code}). Keep the secret from here:`);
        return { ...report, exitCode: REFUSED };
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
    /** Removes the file if no secret was written. */
    close(): void {
      closeSync(descriptor);
      if (!isWritten) rmSync(file, { force: true });
    },
  };
}

function create(file: string): number {
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(
      code === 'EEXIST'
        ? `${file} exists: name a new file, because other users might read this one, or it might hold a key in use`
        : `${file} cannot be written (${code}): name a file in a folder where this user may write`,
    );
  }
}
