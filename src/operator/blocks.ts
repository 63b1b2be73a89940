/** `operator blocks`: the clients that organizations block. */
import { type Command, Option } from 'commander';
import type { ListedBlock } from '../accounts/access/client-blocks.ts';
import { clientNamed } from './command/names.ts';
import type { Operator } from './command/operator.ts';
import { addList, type ListForm } from './command/report.ts';

type Only = { readonly organization?: string; readonly client?: string };

export function addBlockCommands(program: Command, operator: Operator): void {
  const blocks = program.command('blocks').description('clients that organizations block');

  addList(blocks, operator, LIST, async (registries, page, { organization, client }: Only) => {
    const place = organization && (await registries.organizations.find('organization', organization));
    return registries.access.clientBlocks.list(page, {
      organizationId: place ? place.id : undefined,
      clientId: client && (await clientNamed(registries, client)).id,
    });
  })
    .description('list which organization blocks which client, since when, and who blocked it')
    .addOption(new Option('--organization <id>', 'only blocks by this organization'))
    .addOption(new Option('--client <id>', 'only blocks of this client'));
}

const LIST: ListForm<ListedBlock> = {
  heading: ['ID', 'ORGANIZATION', 'WAREHOUSE', 'CLIENT', 'SINCE', 'BY', 'NOTE'],
  row: (block) => [
    block.id,
    block.organizationName,
    block.warehouseName ?? 'all',
    block.clientName ?? '(deleted)',
    block.at?.toISOString().slice(0, 10) ?? '',
    block.by ?? '',
    noteOf(block),
  ],
  value: (block) => ({
    id: block.id,
    organization_id: block.organizationId,
    organization_name: block.organizationName,
    warehouse_id: block.warehouseId,
    warehouse_name: block.warehouseName,
    client_id: block.clientId,
    client_name: block.clientName,
    blocked_at: block.at,
    blocked_by: block.by,
    follows_another: block.follows,
  }),
  nothing: 'No organization blocks a client.',
};

function noteOf({ clientName, follows }: ListedBlock): string {
  if (clientName === null) return 'its owner’s next client with the same redirect host is blocked, too';
  return follows ? 'another client of its owner is blocked' : '';
}
