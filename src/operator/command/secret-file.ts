/** `--out`: writes the secret that a command makes into a file that only its owner may read. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { WrongUsage } from './arguments.ts';
import type { Report } from './operator.ts';

/** Adds `--out` to a command whose report has a `secret`. */
export const addOutOption = (command: Command): Command =>
  command.addOption(
    new Option('--out <file>', 'write the secret into this new file (mode 0600) instead of printing it'),
  );

/**
 * Creates the file before the command changes anything, so that no secret is made that cannot be written.
 *
 * @throws WrongUsage also if the file exists: other users may be able to read it
 */
export function createSecretFile(file: string) {
  const descriptor = create(file);
  let isWritten = false;
  return {
    /** Returns the report without the secret, which the file has then. */
    take({ secret, ...report }: Report): Report {
      if (secret === undefined) return report;
      writeFileSync(descriptor, `${secret}\n`);
      fsyncSync(descriptor);
      isWritten = true;
      const lines = report.text.split('\n').filter((line) => !line.includes(secret));
      return {
        ...report,
        value: withoutValue(report.value, secret),
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
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(
      code === 'EEXIST'
        ? `${file} exists: name a new file, because other users might read this one, or it might hold a key in use`
        : `${file} cannot be created (${code}): name a file in a folder where the user of this command may write`,
    );
  }
}

const withoutValue = (value: unknown, secret: string): unknown =>
  Object.fromEntries(Object.entries(value as object).filter(([, one]) => one !== secret));
