/** `operator organizations policy`, `requests`, `approve`, `block` and `unblock`. */
import { type Command, Option } from 'commander';
import type { OrganizationPolicy } from '../../accounts/organizations/organization-policy.ts';
import { allOf, isUndecided } from '../../authorizations/organization-reach.ts';
import { Refusal } from '../../base/refusal.ts';
import { WrongUsage } from '../command/arguments.ts';
import { clientNamed } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import { table } from '../command/report.ts';

interface PolicyOptions {
  readonly apiKeys?: 'allow' | 'refuse';
  readonly approveConnected?: true;
}

export function addPolicyCommands(organizations: Command, operator: Operator): void {
  const { run } = operator;

  organizations
    .command('policy')
    .description('show, or change, which clients and API keys reach the organization')
    .argument('<id>', 'the organization')
    .argument('[policy]', 'open: all clients that members connect; ask: only approved ones')
    .addOption(
      new Option('--api-keys <what>', 'allow or refuse personal API keys of members').choices(['allow', 'refuse']),
    )
    .option('--approve-connected', 'with ask: approve all clients that members have connected')
    .action((id: string, clients: string | undefined, options: PolicyOptions) => {
      const { apiKeys, approveConnected } = options;
      if (clients !== undefined && clients !== 'open' && clients !== 'ask') {
        throw new WrongUsage('the policy is open or ask');
      }
      if (approveConnected && clients !== 'ask') {
        throw new WrongUsage('--approve-connected needs the policy ask');
      }
      return run(async ({ organizations, organizationEndings, organizationReach }) => {
        const organization = await organizations.find('organization', id);
        const before = await organizationReach.policyOf(id);
        const policy = {
          asksFirst: clients === undefined ? before.asksFirst : clients === 'ask',
          allowsApiKeys: apiKeys === undefined ? before.allowsApiKeys : apiKeys === 'allow',
        };
        const connected = approveConnected ? await allOf(organizationReach.of(id).clients) : [];
        const approved = connected.filter(isUndecided);
        if (clients !== undefined || apiKeys !== undefined) {
          await organizationEndings.setPolicy({ organization }, policy, approved);
        }
        const { name } = organization;
        return {
          value: { id, name, ...policyValue(policy), approved: approved.map((one) => one.id) },
          text: `${name}: ${policyText(policy)}.${approved.length > 0 ? ` Approved ${approved.length} clients.` : ''}`,
        };
      });
    });

  organizations
    .command('requests')
    .description('list the clients that members have connected and that wait for an approval')
    .argument('<id>', 'the organization')
    .action((id: string) =>
      run(async ({ organizations, organizationReach }) => {
        await organizations.find('organization', id);
        const clients = await allOf(organizationReach.of(id).clients);
        const requests = clients
          .filter(({ state }) => state === 'waiting')
          .map((client) => ({
            id: client.id,
            name: client.name,
            owner_name: client.ownerName,
            people: client.count,
            requested_at: client.requestedAt,
          }));
        const rows = requests.map((one) => [
          one.id,
          one.name,
          one.owner_name ?? 'the operator',
          `${one.people}`,
          one.requested_at?.toISOString().slice(0, 10) ?? '',
        ]);
        const heading = ['ID', 'NAME', 'OWNER', 'PEOPLE', 'SINCE'];
        return { value: requests, text: table(heading, rows, 'No client waits for an approval.') };
      }),
    );

  organizations
    .command('approve')
    .description('let a client reach an organization that asks first')
    .argument('<id>', 'the organization')
    .argument('<client>', 'the client ID')
    .action((id: string, clientId: string) => decide('approve', 'Approved', id, clientId));

  for (const [verb, description, done] of BLOCKS) {
    organizations
      .command(verb)
      .description(description)
      .argument('<id>', 'the organization')
      .argument('<client>', 'the client ID')
      .addOption(new Option('--warehouse <id>', 'only in this warehouse of the organization'))
      .action((id: string, clientId: string, { warehouse }: { readonly warehouse?: string }) =>
        decide(verb, done, id, clientId, warehouse),
      );
  }

  const decide = (verb: 'approve' | 'block' | 'unblock', done: string, id: string, clientId: string, place?: string) =>
    run(async (registries) => {
      const organization = await registries.organizations.find('organization', id);
      const warehouse = place === undefined ? undefined : await registries.organizations.find('warehouse', place);
      const client = await clientNamed(registries, clientId);
      const { approve, ...blocks } = registries.organizationEndings;
      const isDone = await (verb === 'approve'
        ? approve({ organization }, client)
        : blocks[verb]({ organization }, client, warehouse));
      const where = (warehouse ?? organization).name;
      if (!isDone) throw unchanged(client.name, where);
      const key = `${warehouse?.id ?? id}/${clientId}`;
      const ids = { organization_id: id, ...(warehouse && { warehouse_id: warehouse.id }), client_id: clientId };
      return { value: { id: key, ...ids, [verb]: true }, text: `${done} ${client.name} in ${where}.` };
    });
}

const BLOCKS = [
  ['block', 'block a client for all members, even if it is approved', 'Blocked'],
  ['unblock', 'unblock a client; an earlier approval is valid again', 'Unblocked'],
] as const;

export const policyValue = ({ asksFirst, allowsApiKeys }: OrganizationPolicy) => ({
  clients: asksFirst ? 'ask' : 'open',
  api_keys: allowsApiKeys ? 'allow' : 'refuse',
});

/** Describes the policy as `organizations list` does, such as `ask, no API keys`. */
export const policyText = ({ asksFirst, allowsApiKeys }: OrganizationPolicy): string =>
  `${asksFirst ? 'ask' : 'open'}${allowsApiKeys ? '' : ', no API keys'}`;

const unchanged = (client: string, organization: string): Refusal =>
  new Refusal(
    'nothing_changed',
    `Nothing was changed for ${client} in ${organization}: this was decided before, people cannot ` +
      'connect this client, or the warehouse is not one of the organization.',
    'See `organizations show` and `organizations requests`.',
  );
