/** `operator revoke`: ends the access of a person, a client or a token on every node at once. */
import { type Command, Option } from 'commander';
import { readToken, STANDARD_INPUT_IS_SAFER, WrongUsage } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import type { Operator } from '../command/operator.ts';
import { revokeAccount, revokeAll, revokeClient } from './many.ts';
import { revokeToken } from './token.ts';

interface RevokeOptions {
  readonly account?: string;
  readonly client?: string;
  readonly token?: string;
  readonly all?: true;
}

const WHAT = ['account', 'client', 'token', 'all'];

/** Creates an option that conflicts with every other option in `WHAT`. */
function what(flags: string, description: string): Option {
  const option = new Option(flags, description);
  return option.conflicts(WHAT.filter((other) => other !== option.attributeName()));
}

export function addRevokeCommand(program: Command, operator: Operator): void {
  const { run } = operator;
  addYesOption(program.command('revoke'))
    .description('revoke the access of a person, a client or one token, at once and on every node')
    .addOption(
      what('--account <account>', 'of a person: connections, API keys, browser sessions, links to set the password'),
    )
    .addOption(
      what('--client <id>', 'all tokens of a client: every connection to it, or all tokens of a machine client'),
    )
    .addOption(
      what('--token <token>', 'one token or code with its whole authorization, or one API key; - for standard input'),
    )
    .addOption(what('--all', 'every authorization of all people: after an older PostgreSQL was restored'))
    .addHelpText(
      'after',
      '\n--account, --client and --all ask for confirmation, or need --yes. They change ' +
        'neither the account nor\nthe client: people may connect again. `accounts suspend` ' +
        `or \`clients suspend\` prevents that.\n${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async ({ account, client, token, all }: RevokeOptions) => {
      const value = token === undefined ? undefined : await readToken(token, operator);
      if (value !== undefined) return run((registries) => revokeToken(registries, value));
      if (account !== undefined) return run((registries) => revokeAccount(registries, account, operator));
      if (client !== undefined) return run((registries) => revokeClient(registries, client, operator));
      if (all) return run((registries) => revokeAll(registries, operator));
      throw new WrongUsage('choose what to revoke: --account, --client, --token or --all');
    });
}
