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

  for (const [verb, description, done] of DECISIONS) {
    organizations
      .command(verb)
      .description(description)
      .argument('<id>', 'the organization')
      .argument('<client>', 'the client ID')
      .action((id: string, clientId: string) =>
        run(async (registries) => {
          const organization = await registries.organizations.find('organization', id);
          const client = await clientNamed(registries, clientId);
          const decide = registries.organizationEndings[verb];
          if (!(await decide({ organization }, client))) {
            throw unchanged(client.name, organization.name);
          }
          return {
            value: { id: `${id}/${clientId}`, organization_id: id, client_id: clientId, [verb]: true },
            text: `${done} ${client.name} in ${organization.name}.`,
          };
        }),
      );
  }
}

const DECISIONS = [
  ['approve', 'let a client reach an organization that asks first', 'Approved'],
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
    `Nothing was changed for ${client} in ${organization}: this was decided before, or people ` +
      'cannot connect this client.',
    'See `organizations show` and `organizations requests`.',
  );
