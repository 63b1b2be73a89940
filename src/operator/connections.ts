/** `operator connections`: lists and ends the connections of people to clients. */
import type { Command } from 'commander';
import { type ConnectionLimit, isLimited } from '../accounts/access/access-limit.ts';
import { isAccountId } from '../accounts/account.ts';
import type { ListedConnection } from '../authorizations/connected-clients.ts';
import { isClientId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { needsOneOf, WrongUsage } from './command/arguments.ts';
import { addYesOption } from './command/confirmation.ts';
import { accountNamed, clientNamed } from './command/names.ts';
import type { Operator } from './command/operator.ts';
import { addList, dayOf, type ListForm } from './command/report.ts';

interface Whose {
  readonly account?: string;
  readonly client?: string;
}

export function addConnectionCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const connections = program.command('connections').description('connections of people to clients');

  const list = addList(connections, operator, LIST, async (registries, page, { account, client }: Whose) => {
    const accountId = account && (await accountNamed(registries, account)).id;
    const clientId = client && (await clientNamed(registries, client)).id;
    return registries.connections.listBoth({ accountId, clientId }, page);
  })
    .description('list the active connections, the latest first')
    .option('--account <account>', 'only of this person: email address or account ID')
    .option('--client <id>', 'only to this client');
  needsOneOf(list, ['account', 'client'], 'choose whose connections to list: --account, --client or both');

  addYesOption(connections.command('end'))
    .description('end one person’s connection to one client, with all its authorizations')
    .argument('<connection>', 'its ID, as in `connections list`: account ID/client ID')
    .action((id: string) => {
      const [account = '', client = '', ...rest] = id.split('/');
      if (!isAccountId(account) || !isClientId(client) || rest.length > 0) {
        throw new WrongUsage('name the connection by its ID from `connections list`');
      }
      return run(async (registries) => {
        const { id: accountId, email } = await accountNamed(registries, account);
        const { id: clientId, name } = await clientNamed(registries, client);
        if (!(await registries.connections.find(accountId, clientId))) throw unknown(email, name);
        await operator.confirm(`Ends the connection of ${email} to ${name}.`);
        const ended = await registries.disconnect({ accountId, clientId });
        if (ended.length === 0) throw unknown(email, name);
        return {
          value: { id, email, client_name: name, ended: true },
          text:
            `Ended the connection of ${email} to ${name}, with all its authorizations. ` +
            'The person must approve the client before it gets another authorization.',
        };
      });
    });
}

const limitValue = ({ places, isReadOnly, until }: ConnectionLimit) => ({ places, read_only: isReadOnly, until });

const LIST: ListForm<ListedConnection> = {
  heading: ['ID', 'EMAIL', 'CLIENT', 'CONNECTED', 'LAST USED', 'LIMITED'],
  row: (one) => [
    one.id,
    one.email,
    one.clientName,
    dayOf(one.connectedAt),
    dayOf(one.lastUsedAt),
    isLimited(one.limit) ? 'yes' : '',
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
    limit: isLimited(one.limit) ? limitValue(one.limit) : null,
  }),
  nothing: 'There are no connections.',
  whose: ['account', 'client'],
};

const unknown = (email: string, name: string): Refusal =>
  new Refusal(
    'connection_unknown',
    `${email} has no connection to ${name}.`,
    'See `connections list`. `show` shows ended connections.',
  );
