/** `npm run operator -- …`: what an operator does beside the settings file, one command at a time. */
import { Command, CommanderError } from 'commander';
import { addAccountCommands } from './accounts.ts';
import { addCheckConfigCommand } from './check-config.ts';
import { addClientCommands } from './clients.ts';
import { failureOf } from './failure.ts';
import { addMembershipCommands } from './memberships.ts';
import type { Operator } from './operator.ts';
import { addOrganizationCommands } from './organizations.ts';
import { withRegistries } from './registries.ts';
import { print } from './report.ts';
import { addWarehouseCommands } from './warehouses.ts';

/** Looked up here because a command line that cannot be understood is answered in JSON as well. */
const json = process.argv.includes('--json');

const operator: Operator = {
  run: async (work) => print(await withRegistries(work), { json }),
  print: (report) => print(report, { json }),
};

const program = new Command('operator')
  .description('Administers a Gatehouse: the one of config/gatehouse.yaml and the environment.')
  .option('--json', 'print exactly one JSON value, for an error too')
  .helpOption('-h, --help', 'show what a command takes')
  .configureHelp({ showGlobalOptions: true })
  .showHelpAfterError('Add --help to see what the command takes.')
  .addHelpText(
    'after',
    `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 problems in the configuration.
Commands work beside a running service and without one.
With --json call \`npm run --silent operator -- …\`, or npm prints lines of its own.`,
  )
  .exitOverride();
if (json) program.configureOutput({ writeErr: () => {} });

addAccountCommands(program, operator);
addOrganizationCommands(program, operator);
addWarehouseCommands(program, operator);
addMembershipCommands(program, operator);
addClientCommands(program, operator);
addCheckConfigCommand(program, operator);

try {
  await program.parseAsync();
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
