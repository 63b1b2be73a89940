/** `operator clients list`: which clients there are. */
import { type Command, Option } from 'commander';
import type { ClientKind } from '../../clients/client.ts';
import { type ListOptions, listed, listReport, pageAsked } from '../program/lists.ts';
import { accountNamed } from '../program/names.ts';
import type { Operator } from '../program/operator.ts';
import { clientValue, stateOf } from './client-report.ts';

export const KINDS: readonly ClientKind[] = [
  'confidential',
  'public',
  'machine',
  'resource-server',
];

export function addClientList(clients: Command, operator: Operator): void {
  const { run } = operator;
  listed(clients.command('list'))
    .description('every client, oldest first')
    .addOption(new Option('--kind <kind>', 'of this kind').choices(KINDS))
    .option('--owner <account>', 'owned by this person: email address or account ID')
    .option('--suspended', 'only those that are suspended')
    .action(({ kind, owner, suspended, ...options }: ClientListOptions) =>
      run(async (registries) => {
        const ownerAccountId = owner && (await accountNamed(registries, owner)).id;
        const only = { kind, ownerAccountId, isSuspended: suspended };
        return listReport(await registries.clients.list(pageAsked(options, operator), only), {
          heading: ['ID', 'KIND', 'NAME', 'OWNER', 'STATE'],
          row: (client) => {
            const { id, kind, name, ownerName = '(operator)' } = client;
            return [id, kind, name, ownerName, stateOf(client)];
          },
          value: clientValue,
          nothing: 'There are no clients.',
        });
      }),
    );
}

interface ClientListOptions extends ListOptions {
  readonly kind?: ClientKind;
  readonly owner?: string;
  readonly suspended?: true;
}
