/** `operator organizations policy`, `block` and `unblock`. Only owners and admins can approve clients, on a page. */
import { type Command, Option } from 'commander';
import type { OrganizationPolicy } from '../../accounts/organizations/organization-policy.ts';
import { Refusal } from '../../base/refusal.ts';
import { WrongUsage } from '../command/arguments.ts';
import { clientNamed } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';

export function addPolicyCommands(organizations: Command, { run }: Operator): void {
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

export const policyValue = ({ asksFirst, allowsApiKeys }: OrganizationPolicy) => ({
  clients: asksFirst ? 'ask' : 'open',
  api_keys: allowsApiKeys ? 'allow' : 'refuse',
});

/** Returns a text such as `ask, no API keys`. */
export const policyText = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): string =>
  `${asksFirst ? 'ask' : 'open'}${allowsApiKeys ? '' : ', no API keys'}`;

const unchanged = (client: string, organization: string): Refusal =>
  new Refusal(
    'nothing_changed',
    `Nothing was changed for ${client} in ${organization}: this was decided before, people cannot ` +
      'connect this client, or the warehouse is not one of the organization.',
    'See `show` with the ID of the organization.',
  );
