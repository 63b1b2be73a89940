/** All commands, and what they have in common. */
import { Command, InvalidArgumentError } from 'commander';
import packageFile from '../../../package.json' with { type: 'json' };
import { addAccountCommands } from '../accounts/accounts.ts';
import { addApiKeyCommands } from '../accounts/api-keys.ts';
import { addSessionCommands } from '../accounts/sessions.ts';
import { addAuditCommand } from '../audit.ts';
import { addBlockCommands } from '../blocks.ts';
import { addCheckConfigCommand } from '../check-config.ts';
import { addClientCommands } from '../clients/clients.ts';
import type { Operator } from '../command/operator.ts';
import { WIDTH } from '../command/report.ts';
import { addConnectionCommands } from '../connections.ts';
import { addDoctorCommand } from '../doctor.ts';
import { addExplainCommand } from '../explain/explain.ts';
import { addImportCommand } from '../import/import.ts';
import { addKeyCommands } from '../keys.ts';
import { addMigrateCommand } from '../migrate.ts';
import { addNodesCommand } from '../nodes.ts';
import { addMembershipCommands } from '../places/memberships.ts';
import { addOrganizationCommands, addWarehouseCommands } from '../places/places.ts';
import { addProblemCommands } from '../problems.ts';
import { addReloadCommand } from '../reload.ts';
import { addRevokeCommand } from '../revoke/revoke.ts';
import { addCompletionCommand } from './completion.ts';
import { addExamples } from './examples.ts';

/** @param json keeps commander silent, because the caller prints errors as JSON */
export function createProgram(operator: Operator, { json }: { readonly json: boolean }): Command {
  const { stdout, stderr } = operator;
  const program = new Command('gatehouse')
    .description('Administers the Gatehouse that the settings file and the environment lead to.')
    .option('--json', 'print exactly one JSON value, for an error too')
    .option('--reason <text>', 'why: kept in the audit log with what the command changes', reason)
    .version(packageFile.version, '--version', 'print the version of Gatehouse')
    .helpOption('-h, --help', 'show what a command takes')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help to see what the command takes.')
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 problems in the configuration.
Commands work beside a running service and without one. \`gatehouse …\` takes the environment of the
systemd unit or of the container; in a checkout \`npm run operator -- …\` is the same command.`,
    )
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => json || stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? WIDTH,
      getErrHelpWidth: () => stderr.columns ?? WIDTH,
    })
    .exitOverride();

  addAccountCommands(program, operator);
  addOrganizationCommands(program, operator);
  addWarehouseCommands(program, operator);
  addMembershipCommands(program, operator);
  addClientCommands(program, operator);
  addConnectionCommands(program, operator);
  addSessionCommands(program, operator);
  addApiKeyCommands(program, operator);
  addBlockCommands(program, operator);
  addRevokeCommand(program, operator);
  addProblemCommands(program, operator);
  addExplainCommand(program, operator);
  addAuditCommand(program, operator);
  addImportCommand(program, operator);
  addCheckConfigCommand(program, operator);
  addReloadCommand(program, operator);
  addKeyCommands(program, operator);
  addDoctorCommand(program, operator);
  addNodesCommand(program, operator);
  addMigrateCommand(program, operator);
  addCompletionCommand(program, operator);
  addExamples(program);
  return program;
}

/** Commands that change nothing. Every other one first prints which deployment it acts on. */
export const READ_ONLY: readonly string[] = [
  'accounts list',
  'accounts show',
  'api-keys list',
  'audit',
  'blocks list',
  'check-config',
  'clients list',
  'clients show',
  'completion',
  'connections list',
  'doctor',
  'explain',
  'keys generate',
  'keys list',
  'links list',
  'memberships list',
  'nodes',
  'organizations list',
  'passkeys list',
  'problems list',
  'sessions list',
  'warehouses list',
];

/** @returns true for a command that changes nothing, and for a dry run. */
export function onlyReads(command: Command | undefined): boolean {
  if (command === undefined || command.opts<{ dryRun?: boolean }>().dryRun) return true;
  return READ_ONLY.includes(wordsOf(command));
}

/** The words by which a command is called: `accounts list`. */
function wordsOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${wordsOf(parent)} ${command.name()}` : command.name();
}

const MAX_REASON_LENGTH = 500;

function reason(text: string): string {
  if (text.trim() !== '' && text.length <= MAX_REASON_LENGTH && !/\p{C}/u.test(text)) return text;
  throw new InvalidArgumentError(`Write 1 to ${MAX_REASON_LENGTH} visible characters.`);
}
