/** `npm run operator -- …`: what an operator does beside the settings file, one command at a time. */
import { CommanderError } from 'commander';
import { failureOf } from './failure.ts';
import type { Operator } from './operator.ts';
import { createProgram } from './program.ts';
import { withRegistries } from './registries.ts';
import { print } from './report.ts';

/** Looked up here because a command line that cannot be understood is answered in JSON as well. */
const json = process.argv.includes('--json');

const operator: Operator = {
  run: async (work) => print(await withRegistries(work), { json }),
  print: (report) => print(report, { json }),
  say: (line) => void (json || process.stdout.write(`${line}\n`)),
};

try {
  await createProgram(operator, { json }).parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError && error.exitCode === 0)) fail(error);
}

/** Sets the exit code, and leaves the process to end by itself so that all output is written. */
function fail(error: unknown): void {
  const failure = failureOf(error);
  process.exitCode = failure.exitCode;
  if (failure.stack) process.stderr.write(`${failure.stack}\n`);
  if (json) print(failure, { json });
  // Commander has told people already what it did not understand.
  else if (!(error instanceof CommanderError)) process.stderr.write(`${failure.text}\n`);
}
