/** Defines all commands, and the options that all commands have. */
import { Command, InvalidArgumentError } from 'commander';
import packageFile from '../../../package.json' with { type: 'json' };
import { holdsSecret } from '../../base/random-id.ts';
import { addAccountCommands } from '../accounts/accounts.ts';
import { addApiKeyCommands } from '../accounts/api-keys.ts';
import { addSessionCommands } from '../accounts/sessions.ts';
import { addAuditCommand } from '../audit.ts';
import { addChangesCommand } from '../changes.ts';
import { addCheckConfigCommand } from '../check-config.ts';
import { addClientCommands } from '../clients/clients.ts';
import type { Operator } from '../command/operator.ts';
import { WIDTH } from '../command/report.ts';
import { addConnectionCommands } from '../connections.ts';
import { addDoctorCommand } from '../doctor.ts';
import { addImportCommand } from '../import/import.ts';
import { addKeyCommands } from '../keys.ts';
import { addLeakedCommand } from '../leaked.ts';
import { addMigrateCommand } from '../migrate.ts';
import { addNodesCommand } from '../nodes.ts';
import { addMembershipCommands } from '../places/memberships.ts';
import { addOrganizationCommands, addWarehouseCommands } from '../places/places.ts';
import { addReloadCommand } from '../reload.ts';
import { addRevokeCommand } from '../revoke.ts';
import { addShowCommand } from '../show/show.ts';

/** @param json if true, commander prints no errors, because the caller prints them as JSON */
export function createProgram(operator: Operator, { json }: { readonly json: boolean }): Command {
  const { stdout, stderr } = operator;
  const program = new Command('gatehouse')
    .description('Administers the Gatehouse deployment that the settings file and the environment select.')
    .option('--json', 'print exactly one JSON value, also for an error')
    .option('--reason <text>', 'reason of the change, for the audit log', reason)
    .version(packageFile.version, '--version', 'print the version of Gatehouse')
    .helpOption('-h, --help', 'show the help of a command')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help to see how the command is used.')
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 refused or failed, 2 wrong usage or no deployment, 3 problems in the ' +
        'configuration.\nCommands work whether or not the service is running. `gatehouse …` uses the environment of ' +
        'the\nsystemd unit or of the container; in a checkout, `npm run operator -- …` is the same command.',
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
  addRevokeCommand(program, operator);
  addLeakedCommand(program, operator);
  addShowCommand(program, operator);
  addAuditCommand(program, operator);
  addImportCommand(program, operator);
  addChangesCommand(program, operator);
  addCheckConfigCommand(program, operator);
  addReloadCommand(program, operator);
  addKeyCommands(program, operator);
  addDoctorCommand(program, operator);
  addNodesCommand(program, operator);
  addMigrateCommand(program, operator);
  addExamples(program);
  return program;
}

/** Commands that change nothing. All other commands first print which deployment they change. */
const READS = /^(audit|check-config|doctor|nodes|show|\S+ (list|show))$/;

/** Commands that end or refuse access. They run even if the settings file is refused, because they need only stores. */
const STOPS = /^(revoke|\S+ (block|end|revoke|suspend))$/;

export const onlyStops = (command: Command | undefined): boolean =>
  command !== undefined && STOPS.test(commandPath(command));

/** True if the command changes nothing, as in a dry run. */
export const onlyReads = (command: Command | undefined): boolean =>
  command === undefined || command.opts<{ dryRun?: boolean }>().dryRun === true || READS.test(commandPath(command));

/** Returns a text such as `accounts list`. */
function commandPath(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${commandPath(parent)} ${command.name()}` : command.name();
}

const MAX_REASON_LENGTH = 500;

function reason(text: string): string {
  if (holdsSecret(text)) {
    throw new InvalidArgumentError('Leave out the secret: the audit log would keep it.');
  }
  if (text.trim() !== '' && text.length <= MAX_REASON_LENGTH && !/\p{C}/u.test(text)) return text;
  throw new InvalidArgumentError(`Write 1 to ${MAX_REASON_LENGTH} visible characters.`);
}

/** Command lines, without the word `gatehouse` at the beginning. */
const EXAMPLES = `
accounts add --email ada@example.com --name "Ada Lovelace" --invite
links remove ada@example.com --provider platform
passkeys remove ada@example.com --passkey pk_VcX0bq7mWcXk2f1S
organizations add --name "Northern Logistics"
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --warehouse wh_c1kXq0V7bWmX2fSc
warehouses add --organization org_VcX0bq7mWcXk2f1S --name Rotterdam
memberships set --account ada@example.com --organization org_VcX0bq7mWcXk2f1S --role member
memberships set --account ada@example.com --warehouse wh_c1kXq0V7bWmX2fSc --rights read,write
memberships remove --account ada@example.com --organization org_VcX0bq7mWcXk2f1S
memberships list --organization org_VcX0bq7mWcXk2f1S --role owner
nodes --wait 2 --within 5m
connections end acc_VcX0bq7mWcXk2f1S/gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
clients add --kind confidential --name "Acme Sync" --redirect-uri https://acme.example/callback
clients add --kind public --native --name "Acme Mobile" --redirect-uri com.acme.mobile:/callback
clients remove-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --secret=x7Qa
revoke --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
revoke --token - < leaked-token.txt
leaked - < found.txt
show - < found.txt
audit --since 7d --actor operator
audit --account ada@example.com --action sign_in_failed --limit 20
import people.jsonl --dry-run
import people.jsonl --prune --yes
import people.jsonl --as-of 2026-01-31T08:00Z
changes allow 480 --reason "ticket 4711"
`.split('\n');

/** Adds required options to each command's usage, and examples to its help: one of each subcommand, if it has any. */
function addExamples(command: Command, path: readonly string[] = []): void {
  const verbs = command.commands;
  for (const verb of verbs) addExamples(verb, [...path, verb.name()]);
  if (path.length === 0) return;
  const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
  command.usage([...required, command.usage()].join(' '));
  const name = path.join(' ');
  const of = (words: string) => EXAMPLES.filter((line) => line === words || line.startsWith(`${words} `));
  const shown = verbs.length === 0 ? of(name) : verbs.flatMap((verb) => of(`${name} ${verb.name()}`).slice(0, 1));
  if (shown.length === 0) return;
  const lines = shown.map((example) => `  gatehouse ${example}`);
  command.addHelpText('after', `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`);
}
