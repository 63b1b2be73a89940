/** One command line, from its words to its exit code. */
import { CommanderError } from 'commander';
import { failureOf } from './failure.ts';
import type { Operator, Surroundings } from './operator.ts';
import { createProgram } from './program.ts';
import { withRegistries } from './registries.ts';
import type { Report } from './report.ts';

/**
 * Whatever goes wrong is told on the streams, and everything the command opened is closed then.
 *
 * @param args the words after `npm run operator --`.
 * @returns the exit code, as the help of the program explains it.
 */
export async function runOperator(
  args: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  const { stdout, stderr } = surroundings;
  // Looked up here because a command line that cannot be understood is answered in JSON as well.
  const json = args.includes('--json');
  let exitCode = 0;

  function print(report: Report): void {
    stdout.write(`${json ? JSON.stringify(report.value) : report.text}\n`);
    exitCode = report.exitCode ?? 0;
  }
  const operator: Operator = {
    ...surroundings,
    run: async (work) => print(await withRegistries(surroundings, work)),
    print,
    say: (line) => void (json || stdout.write(`${line}\n`)),
  };

  try {
    await createProgram(operator, { json }).parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError && error.exitCode === 0)) fail(error);
  }
  return exitCode;

  function fail(error: unknown): void {
    const failure = failureOf(error);
    exitCode = failure.exitCode;
    if (failure.stack) stderr.write(`${failure.stack}\n`);
    if (json) print(failure);
    // Commander has told people already what it did not understand.
    else if (!(error instanceof CommanderError)) stderr.write(`${failure.text}\n`);
  }
}
