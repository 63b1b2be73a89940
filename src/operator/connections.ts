/** `operator connections`: who connected what. */
import { type Command, Option } from 'commander';
import { WrongUsage } from './program/failure.ts';
import { type ListOptions, listed, listReport, pageAsked } from './program/lists.ts';
import { accountNamed, clientNamed } from './program/names.ts';
import type { Operator } from './program/operator.ts';

interface Whose {
  readonly account?: string;
  readonly client?: string;
}

export function addConnectionCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const connections = program
    .command('connections')
    .description('which people connected which clients');

  listed(connections.command('list'))
    .description('what is connected now, the latest first; `revoke` ends it')
    .addOption(new Option('--account <account>', 'by this person: email address or account ID'))
    .addOption(new Option('--client <id>', 'to this client'))
    .action(({ account, client, ...options }: Whose & ListOptions) => {
      if (account === undefined && client === undefined) {
        throw new WrongUsage('say whose: --account, --client or both');
      }
      return run(async (registries) => {
        const accountId = account && (await accountNamed(registries, account)).id;
        const clientId = client && (await clientNamed(registries, client)).id;
        const page = pageAsked(options, operator);
        const found = await registries.connections.listBoth({ accountId, clientId }, page);
        return listReport(found, {
          heading: ['ID', 'EMAIL', 'CLIENT', 'CONNECTED', 'LAST USED'],
          row: (one) => [
            one.id,
            one.email,
            one.clientName,
            dayOf(one.connectedAt),
            dayOf(one.lastUsedAt),
          ],
          value: (one) => ({
            id: one.id,
            account_id: one.accountId,
            email: one.email,
            client_id: one.clientId,
            client_name: one.clientName,
            connected_at: one.connectedAt,
            approved_at: one.approvedAt,
            last_used_at: one.lastUsedAt,
          }),
          nothing: 'Nothing is connected.',
        });
      });
    });
}

const dayOf = (time: Date | null): string => time?.toISOString().slice(0, 10) ?? 'never';
