/** `operator revoke`: ends what a person, a client or one token may do, at once and on every node. */
import { type Command, Option } from 'commander';
import { askedFirst, type Confirm, type ConfirmationOptions, confirmed } from './confirmation.ts';
import { WrongUsage } from './failure.ts';
import { givenToken, STANDARD_INPUT_IS_SAFER } from './given-token.ts';
import type { Operator } from './operator.ts';
import { revokeAccount } from './revoke-account.ts';
import { revokeClient } from './revoke-client.ts';
import { revokeToken } from './revoke-token.ts';

interface RevokeOptions extends ConfirmationOptions {
  readonly account?: string;
  readonly client?: string;
  readonly token?: string;
}

export function addRevokeCommand(program: Command, operator: Operator): void {
  const { run } = operator;
  askedFirst(
    program
      .command('revoke')
      .description('end what a person, a client or one token may do, at once and on every node'),
  )
    .addOption(
      new Option(
        '--account <account>',
        'all of a person: connections, API keys, browser sessions, links to set the password',
      ).conflicts(['client', 'token']),
    )
    .addOption(
      new Option(
        '--client <id>',
        'all tokens of a client: every connection to it, or those of a machine',
      ).conflicts(['account', 'token']),
    )
    .addOption(
      new Option(
        '--token <token>',
        'one token or code with its whole authorization, or one API key; - for standard input',
      ).conflicts(['account', 'client']),
    )
    .addHelpText(
      'after',
      `
--account and --client ask first, or need --yes. They leave the person and the client as they are:
people may connect again, and \`accounts suspend\` or \`clients suspend\` keeps them out.
${STANDARD_INPUT_IS_SAFER}`,
    )
    .action(async (options: RevokeOptions) => {
      const { account, client, token } = options;
      const confirm: Confirm = (what) => confirmed(what, options, operator);
      if (token !== undefined) {
        const value = await givenToken(token, operator);
        return run((registries) => revokeToken(registries, value));
      }
      if (account !== undefined) {
        return run((registries) => revokeAccount(registries, account, confirm));
      }
      if (client === undefined) {
        throw new WrongUsage('say what to revoke: --account, --client or --token');
      }
      return run((registries) => revokeClient(registries, client, confirm));
    });
}
