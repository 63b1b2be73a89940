/** `operator warehouses`: the warehouses of each organization. */
import type { Command } from 'commander';
import type { WarehouseRecord } from '../../accounts/organizations/organizations.ts';
import { type ListOptions, listed, listReport, pageAsked } from '../program/lists.ts';
import type { Operator } from '../program/operator.ts';
import { addPlaceCommands, EXTERNAL_ID } from './places.ts';

export function addWarehouseCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const warehouses = program.command('warehouses').description('warehouses of an organization');

  warehouses
    .command('add')
    .description('add a warehouse to an organization')
    .requiredOption('--organization <id>', 'the organization it belongs to')
    .requiredOption('--name <name>', 'the name that pages show')
    .option(...EXTERNAL_ID)
    .action(({ organization: organizationId, ...draft }: NewWarehouseOptions) =>
      run(async ({ organizations, recordChange }) => {
        const warehouse = await organizations.addWarehouse(
          { organizationId, ...draft },
          (tx, added) => {
            const { id: warehouse_id, name: warehouse_name } = added;
            const details = { warehouse_id, warehouse_name, organization_id: organizationId };
            return recordChange('warehouse_added', { details })(tx);
          },
        );
        return {
          value: warehouseValue(warehouse),
          text: `Added warehouse ${warehouse.id} to ${organizationId}: ${warehouse.name}.`,
        };
      }),
    );

  listed(warehouses.command('list'))
    .description('every warehouse, by the name of its organization and its own')
    .option('--organization <id>', 'only those of this organization')
    .action(({ organization: only, ...options }: ListOptions & { organization?: string }) =>
      run(async ({ organizations }) => {
        const page = await organizations.listWarehouses(pageAsked(options, operator), only);
        return listReport(page, {
          heading: ['ID', 'NAME', 'ORGANIZATION', 'EXTERNAL ID'],
          row: ({ id, name, organizationName, externalId = '' }) => [
            id,
            name,
            organizationName,
            externalId,
          ],
          value: warehouseValue,
          nothing: 'There are no warehouses.',
        });
      }),
    );

  addPlaceCommands(warehouses, 'warehouse', operator);
}

interface NewWarehouseOptions {
  readonly organization: string;
  readonly name: string;
  readonly externalId?: string;
}

const warehouseValue = ({ id, organizationId, name, createdAt, externalId }: WarehouseRecord) => ({
  id,
  warehouse_id: id,
  organization_id: organizationId,
  name,
  external_id: externalId ?? null,
  created_at: createdAt,
});
