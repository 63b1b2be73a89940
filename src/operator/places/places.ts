/** The commands `operator organizations` and `operator warehouses`. */
import { type Command, Option } from 'commander';
import type { OrganizationPolicy } from '../../accounts/organizations/organization-policy.ts';
import type { Place, PlaceKind } from '../../accounts/organizations/places.ts';
import { MAX_COUNTED, type OrganizationReach } from '../../authorizations/organization-reach.ts';
import { Refusal } from '../../base/refusal.ts';
import {
  type Dependents,
  type ListedOrganization,
  type ListedWarehouse,
  MAX_DEPENDENTS,
  type PlaceChanges,
} from '../../changes/organizations.ts';
import { countText, type PageRequest } from '../../storage/pages.ts';
import { WrongUsage } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import { clientNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { addList, type ListForm, table } from '../command/report.ts';
import type { Registries } from '../registries.ts';
import { membersReport } from './memberships.ts';

interface NewPlaceOptions {
  readonly name: string;
  readonly externalId?: string;
}

export function addOrganizationCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const nouns = program.command('organizations').description('organizations that own warehouses');

  withNames(nouns.command('add'), 'required')
    .description('add an organization')
    .action((draft: NewPlaceOptions) =>
      run(async ({ organizations, recordChange }) => {
        const added = await organizations.add(draft, (tx, one) =>
          recordChange('organization_added', { details: detailsOf('organization', one) })(tx),
        );
        const { id, name } = added;
        return { value: ORGANIZATIONS.value(added), text: `Added organization ${id}: ${name}.` };
      }),
    );

  const find = ({ organizations }: Registries, page: PageRequest) => organizations.list(page);
  addList(nouns, operator, ORGANIZATIONS, find).description('list every organization, by name');

  addUpdateAndDelete(nouns, 'organization', operator);
  addPolicyCommands(nouns, operator);
}

export function addWarehouseCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const nouns = program.command('warehouses').description('warehouses of an organization');

  withNames(nouns.command('add'), 'required')
    .description('add a warehouse to an organization')
    .requiredOption('--organization <id>', 'the organization that owns it')
    .action(({ organization, ...draft }: NewPlaceOptions & { readonly organization: string }) =>
      run(async ({ organizations, recordChange }) => {
        const added = await organizations.addWarehouse({ organizationId: organization, ...draft }, (tx, one) => {
          const details = detailsOf('warehouse', one, { organization_id: organization });
          return recordChange('warehouse_added', { details })(tx);
        });
        const { id, name } = added;
        return { value: WAREHOUSES.value(added), text: `Added warehouse ${id} to ${organization}: ${name}.` };
      }),
    );

  const find = ({ organizations }: Registries, page: PageRequest, options: { readonly organization?: string }) =>
    organizations.listWarehouses(page, options.organization);
  addList(nouns, operator, WAREHOUSES, find)
    .description('list every warehouse, those of one organization together, by name')
    .option('--organization <id>', 'only warehouses of this organization');

  addUpdateAndDelete(nouns, 'warehouse', operator);
}

/** How many warehouses and clients `show` prints. */
const SHOWN = 20;
/** Maximum number of pages of clients that `show` reads if it reports on only one ID. */
const MAX_STEPS = 10;

/**
 * Reports an organization or a warehouse, and the people and clients with access to it.
 *
 * @param isAlone false if there may be many reports, so each must be quick
 */
export async function showReport(
  registries: Registries,
  kind: PlaceKind,
  id: string,
  isAlone: boolean,
): Promise<Report> {
  const { organizations, organizationReach } = registries;
  const place = await organizations.find(kind, id);
  const { name, externalId, organization } = place;
  const isOrganization = kind === 'organization';
  const policy = await organizationReach.policyOf(organization.id);
  const warehouses = isOrganization ? await organizations.listWarehouses({ limit: SHOWN }, id) : undefined;
  const members = await membersReport(registries, kind, id);
  const reach = organizationReach.of(organization.id, isOrganization ? undefined : id);
  const { clients, hasMore } = await clientsOf(reach, isAlone ? MAX_STEPS : 1);
  const clientRows = clients.map((row) => [row.id, row.name, row.state, countText(row.people, MAX_COUNTED)]);
  const noClient = hasMore ? 'None of the examined clients has access.' : 'No connected client has access.';
  const warehouseRows = warehouses?.items.map((one) => [one.id, one.name, one.external_id ?? '']) ?? [];
  return {
    value: {
      ...placeValue(kind, place),
      organization,
      policy: policyValue(policy),
      ...(warehouses && { warehouses: warehouses.items.map(WAREHOUSES.value), more_warehouses: warehouses.more }),
      members: members.value,
      clients,
      has_more_clients: hasMore,
    },
    text: [
      `${id}: ${name}${externalId === null ? '' : ` (external ID ${externalId})`}`,
      isOrganization ? `Policy: ${policyText(policy)}` : `Organization: ${organization.id}, ${organization.name}`,
      ...(isOrganization ? ['\nWarehouses', table(['ID', 'NAME', 'EXTERNAL ID'], warehouseRows, 'It has none.')] : []),
      ...(warehouses?.more ? [`There are ${countText(warehouses.more)} more: \`warehouses list\`.`] : []),
      `\nPeople and machine clients\n${members.text}`,
      `\nClients of these people\n${table(['ID', 'NAME', 'STATE', 'PEOPLE'], clientRows, noClient)}`,
      ...(hasMore ? [`There may be more clients: an owner sees them on the page Organizations.`] : []),
    ].join('\n'),
  };
}

/** A page omits clients without access to the warehouse, so a page may be empty although more clients follow. */
async function clientsOf(reach: ReturnType<OrganizationReach['of']>, maxSteps: number) {
  let step = await reach.clients();
  const found = [...step.rows];
  for (let steps = 1; step.next !== undefined && found.length <= SHOWN && steps < maxSteps; steps += 1) {
    step = await reach.clients(step.next);
    found.push(...step.rows);
  }
  const clients = found.slice(0, SHOWN).map((row) => {
    return { id: row.id, name: row.name, state: row.state, people: row.count, last_used_at: row.lastUsedAt };
  });
  return { clients, hasMore: step.next !== undefined || found.length > SHOWN };
}

function addUpdateAndDelete(nouns: Command, kind: PlaceKind, operator: Operator): void {
  const { run } = operator;

  withNames(nouns.command('update'))
    .description('change its name, or its ID in the system that it is imported from')
    .argument('<id>', `the ${kind}`)
    .action((id: string, changes: PlaceChanges) => {
      const changed = Object.keys(changes);
      if (changed.length === 0) throw new WrongUsage('give --name or --external-id');
      return run(async ({ organizations, recordChange }) => {
        const place = await organizations.edit(kind, id, changes, (tx, edited) =>
          recordChange(`${kind}_changed`, { details: detailsOf(kind, edited, { changed }) })(tx),
        );
        return placeReport(kind, place, 'Changed');
      });
    });

  addYesOption(nouns.command('delete'))
    .description('delete it with all access to it; shows first what depends on it')
    .argument('<id>', `the ${kind}`)
    .action((id: string) =>
      run(async ({ organizations, recordChange }) => {
        const { name } = await organizations.find(kind, id, { withEnded: true });
        const lost = await organizations.dependents(kind, id);
        await operator.confirm(`Removes the ${kind} ${name} ${describeLoss(kind, lost)}.`);
        const { people, machines } = lost;
        const place = await organizations.remove(kind, id, (tx, removed) => {
          const details = detailsOf(kind, removed, { people, machines });
          return recordChange(`${kind}_removed`, { details })(tx);
        });
        return placeReport(kind, place, 'Removed', { removed: true, ...lost });
      }),
    );
}

function withNames(command: Command, is?: 'required'): Command {
  const name = ['--name <name>', 'the name shown on pages'] as const;
  return (is ? command.requiredOption(...name) : command.option(...name)).option(
    '--external-id <id>',
    'its ID in the system that it is imported from: the next import matches it by this ID',
  );
}

function describeLoss(kind: PlaceKind, { warehouses, people, machines }: Dependents): string {
  const [some, others] = [people, machines].map((count) => countText(count, MAX_DEPENDENTS));
  const access = `the access of ${some} people and ${others} machine clients`;
  return kind === 'organization'
    ? `with its ${warehouses} warehouses, and ${access}`
    : `with ${access} that was given for it`;
}

const detailsOf = (
  kind: PlaceKind,
  { id, name }: Pick<Place, 'id' | 'name'>,
  more: Readonly<Record<string, string | number | readonly string[]>> = {},
) => ({ [`${kind}_id`]: id, [`${kind}_name`]: name, ...more });

const placeValue = (kind: PlaceKind, { id, name, externalId }: Place) => ({
  id,
  [`${kind}_id`]: id,
  name,
  external_id: externalId,
});

const placeReport = (kind: PlaceKind, place: Place, done: string, more = {}): Report => ({
  value: { ...placeValue(kind, place), ...more },
  text: `${done} ${kind} ${place.id}: ${place.name}.`,
});

const ORGANIZATIONS: ListForm<ListedOrganization> = {
  heading: ['ID', 'NAME', 'WAREHOUSES', 'POLICY', 'EXTERNAL ID'],
  row: ({ id, name, warehouses, policy, external_id }) => [id, name, `${warehouses}`, policy, external_id ?? ''],
  value: ({ policy, warehouses, ...value }) => value,
  nothing: 'There are no organizations.',
};

const WAREHOUSES: ListForm<ListedWarehouse> = {
  heading: ['ID', 'NAME', 'ORGANIZATION', 'EXTERNAL ID'],
  row: ({ id, name, organization_name, external_id }) => [id, name, organization_name, external_id ?? ''],
  value: ({ organization_name, ...value }) => value,
  nothing: 'There are no warehouses.',
};

/** There is no command to approve a client: only owners and admins can approve clients, on a page. */
function addPolicyCommands(organizations: Command, { run }: Operator): void {
  organizations
    .command('policy')
    .description('show, or change, which clients and API keys reach the organization')
    .argument('<id>', 'the organization')
    .argument('[policy]', 'open: all clients that members connect; ask: only approved ones')
    .addOption(
      new Option('--api-keys <what>', 'allow or refuse personal API keys of members').choices(['allow', 'refuse']),
    )
    .action((id: string, clients: string | undefined, { apiKeys }: { readonly apiKeys?: 'allow' | 'refuse' }) => {
      if (clients !== undefined && clients !== 'open' && clients !== 'ask') {
        throw new WrongUsage('the policy is open or ask');
      }
      return run(async ({ organizations, organizationEndings, organizationReach }) => {
        const organization = await organizations.find('organization', id);
        const before = await organizationReach.policyOf(id);
        const policy = {
          asksFirst: clients === undefined ? before.asksFirst : clients === 'ask',
          allowsApiKeys: apiKeys === undefined ? before.allowsApiKeys : apiKeys === 'allow',
        };
        if (clients !== undefined || apiKeys !== undefined) {
          await organizationEndings.setPolicy({ organization }, policy);
        }
        const { name } = organization;
        return { value: { id, name, ...policyValue(policy) }, text: `${name}: ${policyText(policy)}.` };
      });
    });

  for (const [verb, description, done] of BLOCKS) {
    organizations
      .command(verb)
      .description(description)
      .argument('<id>', 'the organization')
      .argument('<client>', 'the client ID')
      .option('--warehouse <id>', 'only in this warehouse of the organization')
      .action((id: string, clientId: string, options: { readonly warehouse?: string }) =>
        run(async (registries) => {
          const { organizations, organizationEndings } = registries;
          const organization = await organizations.find('organization', id);
          const place = options.warehouse;
          const warehouse = place === undefined ? undefined : await organizations.find('warehouse', place);
          const client = await clientNamed(registries, clientId);
          const where = (warehouse ?? organization).name;
          const isDone = await organizationEndings[verb]({ organization }, client, warehouse);
          if (!isDone) throw unchanged(client.name, where);
          const ids = { organization_id: id, ...(warehouse && { warehouse_id: warehouse.id }), client_id: clientId };
          const value = { id: `${warehouse?.id ?? id}/${clientId}`, ...ids, [verb]: true };
          return { value, text: `${done} ${client.name} in ${where}.` };
        }),
      );
  }
}

const BLOCKS = [
  ['block', 'block a client for all members, even if it is approved', 'Blocked'],
  ['unblock', 'unblock a client; an earlier approval is valid again', 'Unblocked'],
] as const;

const policyValue = ({ asksFirst, allowsApiKeys }: OrganizationPolicy) => ({
  clients: asksFirst ? 'ask' : 'open',
  api_keys: allowsApiKeys ? 'allow' : 'refuse',
});

const policyText = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): string =>
  `${asksFirst ? 'ask' : 'open'}${allowsApiKeys ? '' : ', no API keys'}`;

const unchanged = (client: string, organization: string): Refusal =>
  new Refusal(
    'nothing_changed',
    `Nothing was changed for ${client} in ${organization}: this was decided before, people cannot ` +
      'connect this client, or the warehouse is not one of the organization.',
    'See `show` with the ID of the organization.',
  );
