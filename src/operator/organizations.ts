/** `operator organizations`: whose warehouses there are. */
import type { Command } from 'commander';
import type { OrganizationRecord } from '../accounts/organizations.ts';
import type { Operator } from './operator.ts';
import { table } from './report.ts';

export function addOrganizationCommands(program: Command, { run }: Operator): void {
  const organizations = program
    .command('organizations')
    .description('organizations, to which warehouses belong');

  organizations
    .command('add')
    .description('add an organization')
    .requiredOption('--name <name>', 'the name that pages show')
    .action(({ name }: { name: string }) =>
      run(async (registries) => {
        const organization = await registries.organizations.add({ name }, (tx, added) => {
          const details = { organization_id: added.id, organization_name: added.name };
          return registries.recordChange('organization_added', { details })(tx);
        });
        return {
          value: organizationValue(organization),
          text: `Added organization ${organization.id}: ${organization.name}.`,
        };
      }),
    );

  organizations
    .command('list')
    .description('every organization, by name')
    .action(() =>
      run(async (registries) => {
        const all = await registries.organizations.list();
        const rows = all.map(({ id, name, warehouses }) => [id, name, `${warehouses.length}`]);
        return {
          value: all.map(organizationValue),
          text: table(['ID', 'NAME', 'WAREHOUSES'], rows, 'There are no organizations.'),
        };
      }),
    );
}

const organizationValue = ({ id, name, createdAt, externalId }: OrganizationRecord) => ({
  id,
  organization_id: id,
  name,
  external_id: externalId ?? null,
  created_at: createdAt,
});
