/** `operator warehouses`: the warehouses of each organization. */
import type { Command } from 'commander';
import { unknownOrganization, type WarehouseRecord } from '../accounts/organizations.ts';
import type { Operator } from './operator.ts';
import { table } from './report.ts';

export function addWarehouseCommands(program: Command, { run }: Operator): void {
  const warehouses = program.command('warehouses').description('warehouses of an organization');

  warehouses
    .command('add')
    .description('add a warehouse to an organization')
    .requiredOption('--organization <id>', 'the organization it belongs to')
    .requiredOption('--name <name>', 'the name that pages show')
    .action(({ organization: organizationId, name }: { organization: string; name: string }) =>
      run(async ({ organizations, recordChange }) => {
        const warehouse = await organizations.addWarehouse(
          { organizationId, name },
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

  warehouses
    .command('list')
    .description('every warehouse, by the name of its organization and its own')
    .option('--organization <id>', 'only those of this organization')
    .action(({ organization: only }: { organization?: string }) =>
      run(async ({ organizations }) => {
        const chosen = (await organizations.list()).filter(({ id }) => id === (only ?? id));
        if (only !== undefined && chosen.length === 0) throw unknownOrganization(only);
        const rows = chosen.flatMap((organization) =>
          organization.warehouses.map(({ id, name }) => [id, name, organization.name]),
        );
        return {
          value: chosen.flatMap((organization) => organization.warehouses.map(warehouseValue)),
          text: table(['ID', 'NAME', 'ORGANIZATION'], rows, 'There are no warehouses.'),
        };
      }),
    );
}

const warehouseValue = ({ id, organizationId, name, createdAt, externalId }: WarehouseRecord) => ({
  id,
  warehouse_id: id,
  organization_id: organizationId,
  name,
  external_id: externalId ?? null,
  created_at: createdAt,
});
