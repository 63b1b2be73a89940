/** `operator organizations`: whose warehouses there are. */
import type { Command } from 'commander';
import type { OrganizationRecord } from '../../accounts/organizations/organizations.ts';
import { type ListOptions, listed, listReport, pageAsked } from '../program/lists.ts';
import type { Operator } from '../program/operator.ts';
import { addPlaceCommands, EXTERNAL_ID } from './places.ts';

export function addOrganizationCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const organizations = program
    .command('organizations')
    .description('organizations, to which warehouses belong');

  organizations
    .command('add')
    .description('add an organization')
    .requiredOption('--name <name>', 'the name that pages show')
    .option(...EXTERNAL_ID)
    .action((draft: { name: string; externalId?: string }) =>
      run(async (registries) => {
        const organization = await registries.organizations.add(draft, (tx, added) => {
          const details = { organization_id: added.id, organization_name: added.name };
          return registries.recordChange('organization_added', { details })(tx);
        });
        return {
          value: organizationValue(organization),
          text: `Added organization ${organization.id}: ${organization.name}.`,
        };
      }),
    );

  listed(organizations.command('list'))
    .description('every organization, by name')
    .action((options: ListOptions) =>
      run(async (registries) =>
        listReport(await registries.organizations.list(pageAsked(options, operator)), {
          heading: ['ID', 'NAME', 'WAREHOUSES', 'EXTERNAL ID'],
          row: ({ id, name, warehouses, externalId = '' }) => [
            id,
            name,
            `${warehouses}`,
            externalId,
          ],
          value: organizationValue,
          nothing: 'There are no organizations.',
        }),
      ),
    );

  addPlaceCommands(organizations, 'organization', operator);
}

const organizationValue = ({ id, name, createdAt, externalId }: OrganizationRecord) => ({
  id,
  organization_id: id,
  name,
  external_id: externalId ?? null,
  created_at: createdAt,
});
