/** `operator memberships`: the members of organizations, and their rights in warehouses. */
import { type Command, Option } from 'commander';
import type { Member } from '../../accounts/access/access.ts';
import { RIGHTS, type Right, ROLES, type Role, type Subject } from '../../accounts/access/reach.ts';
import type { PlaceKind } from '../../accounts/organizations/places.ts';
import { countText, type PageRequest } from '../../storage/pages.ts';
import { WrongUsage } from '../command/arguments.ts';
import { accountNamed, clientNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { itemsReport, type ListForm, type ListOptions, listed, listReport, table } from '../command/report.ts';
import type { Registries } from '../registries.ts';

interface MembershipOptions {
  readonly account?: string;
  readonly client?: string;
  readonly organization?: string;
  readonly warehouse?: string;
  readonly role?: Role;
  readonly rights?: readonly Right[];
}

export function addMembershipCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const memberships = program.command('memberships').description('what people and machine clients may reach');

  withSubject(memberships.command('set'))
    .description(
      'set the role in an organization, or the rights in one of its warehouses; ' +
        'owners and admins have all rights in every warehouse, viewers at most read',
    )
    .option('--organization <id>', 'the organization to which --role applies')
    .addOption(new Option('--role <role>', 'the role in the organization').choices(ROLES))
    .option('--warehouse <id>', 'the warehouse to which --rights applies')
    .option('--rights <rights>', `one or more of ${RIGHTS.join(',')}, separated by commas`, rightsFrom)
    .action((options: MembershipOptions) => {
      requireCompleteChange(options);
      const { organization, role, warehouse, rights } = options;
      return run(async (registries) => {
        const subject = await subjectOf(registries, options);
        await registries.memberships.set(subject, {
          organization: organization !== undefined && role ? { id: organization, role } : undefined,
          warehouse: warehouse !== undefined && rights ? { id: warehouse, rights } : undefined,
        });
        return accessReport(registries, subject);
      });
    });

  withSubject(memberships.command('remove'))
    .description('remove a membership with all its rights, or only the rights in one warehouse')
    .addOption(new Option('--organization <id>', 'the organization').conflicts('warehouse'))
    .option('--warehouse <id>', 'the warehouse')
    .action((options: MembershipOptions) => {
      const { organization, warehouse } = options;
      const id = organization ?? warehouse;
      if (id === undefined) throw new WrongUsage('name the organization or the warehouse');
      const kind = organization === undefined ? 'warehouse' : 'organization';
      return run(async (registries) => {
        const { organizations, memberships } = registries;
        const subject = await subjectOf(registries, options);
        await organizations.find(kind, id);
        if (kind === 'organization') await memberships.remove(subject, id);
        else await memberships.removeRights(subject, id);
        return accessReport(registries, subject);
      });
    });

  listed(withSubject(memberships.command('list')))
    .description('list what a person or machine client can reach now, or who can reach an organization or warehouse')
    .option('--organization <id>', 'all members and machine clients of this organization')
    .option('--warehouse <id>', 'all people and machine clients that can reach this warehouse')
    .addOption(new Option('--role <role>', 'only members with this role').choices(ROLES))
    .action(({ organization, warehouse, role, ...options }: MembershipOptions & ListOptions) => {
      if (organization === undefined && warehouse === undefined) {
        if (role || options.match !== undefined || options.limit || options.after) {
          throw new WrongUsage('--role, --match, --limit and --after need --organization or --warehouse');
        }
        return run(async (registries) => accessReport(registries, await subjectOf(registries, options)));
      }
      const named = [organization, warehouse, options.account, options.client];
      const [id = '', ...others] = named.filter((one) => one !== undefined);
      if (others.length > 0) {
        throw new WrongUsage('give exactly one of --account, --client, --organization and --warehouse');
      }
      const kind = organization === undefined ? 'warehouse' : 'organization';
      return run(async ({ access }) => {
        const find = (page: PageRequest) => access.reachedBy(kind, id, { ...page, role });
        const given = { ...options, ...(role && { role }) };
        return listReport(operator, memberList(kind), given, find);
      });
    });
}

/** How many members `show` prints for an organization or a warehouse. */
const SHOWN = 20;

/** Reports the first members of an organization, or the first members with access to a warehouse. */
export async function membersReport({ access }: Registries, kind: PlaceKind, id: string): Promise<Report> {
  const { items, more } = await access.reachedBy(kind, id, { limit: SHOWN });
  const { value, text } = itemsReport(memberList(kind), items);
  const rest = more > 0 ? `\nThere are ${countText(more)} more: \`memberships list --${kind} ${id}\`.` : '';
  return { value, text: text + rest };
}

const memberList = (kind: PlaceKind): ListForm<Member> => ({
  heading: ['ID', 'NAME', 'ROLE', ...(kind === 'warehouse' ? ['RIGHTS'] : []), 'STATE'],
  row: ({ id, name, email, role, rights, isSuspended }) => [
    id,
    email ?? `${name} (machine)`,
    role,
    ...(kind === 'warehouse' ? [rights.join(',')] : []),
    isSuspended ? 'suspended' : 'active',
  ],
  value: ({ id, kind: subject, name, email, role, rights, isSuspended }) => ({
    id,
    kind: subject,
    name,
    email,
    role,
    ...(kind === 'warehouse' && { rights }),
    suspended: isSuspended,
  }),
  nothing: 'No person and no machine client has access.',
});

function withSubject(command: Command): Command {
  return command
    .addOption(new Option('--account <account>', 'the person: email address or account ID').conflicts('client'))
    .option('--client <id>', 'or the machine client');
}

function requireCompleteChange({ organization, role, warehouse, rights }: MembershipOptions): void {
  if ((organization === undefined) !== (role === undefined)) {
    throw new WrongUsage('--organization and --role go together');
  }
  if ((warehouse === undefined) !== (rights === undefined)) {
    throw new WrongUsage('--warehouse and --rights go together');
  }
  if (organization === undefined && warehouse === undefined) {
    throw new WrongUsage('give --organization and --role, or --warehouse and --rights');
  }
}

function rightsFrom(list: string): Right[] {
  return list.split(',').map((word) => {
    const right = RIGHTS.find((known) => known === word.trim());
    if (right) return right;
    throw new WrongUsage(`there is no right '${word}': use some of ${RIGHTS.join(',')}`);
  });
}

async function subjectOf(registries: Registries, { account, client }: MembershipOptions): Promise<Subject> {
  if (account !== undefined) return { accountId: (await accountNamed(registries, account)).id };
  if (client === undefined) throw new WrongUsage('name the member: --account or --client');
  return { clientId: (await clientNamed(registries, client)).id };
}

/** The JSON has the form in which introspection returns the access. */
async function accessReport(registries: Registries, subject: Subject): Promise<Report> {
  const organizations = await registries.access.accessOf(subject);
  const rows = organizations.flatMap(({ id, name, role, warehouses }) => [
    [id, name, role],
    ...warehouses.map((warehouse) => [`  ${warehouse.id}`, `  ${warehouse.name}`, warehouse.rights.join(',')]),
  ]);
  const value = 'accountId' in subject ? { account_id: subject.accountId } : { client_id: subject.clientId };
  return {
    value: { ...value, organizations },
    text: table(['ID', 'NAME', 'ROLE OR RIGHTS'], rows, 'The member has no access now.'),
  };
}
