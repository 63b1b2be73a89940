/** `operator memberships`: who belongs to an organization, and with which rights in its warehouses. */
import { type Command, Option } from 'commander';
import type { Member } from '../accounts/access.ts';
import type { PlaceKind } from '../accounts/places.ts';
import { type Organization, RIGHTS, type Right, ROLES, type Role } from '../accounts/reach.ts';
import type { Subject } from '../accounts/subject.ts';
import type { ChangeRecord } from './change-records.ts';
import { WrongUsage } from './failure.ts';
import { type ListForm, type ListOptions, listed, listReport } from './lists.ts';
import { accountNamed, clientNamed } from './names.ts';
import type { Operator } from './operator.ts';
import type { Registries } from './registries.ts';
import { type Report, table } from './report.ts';

interface Whose {
  readonly account?: string;
  readonly client?: string;
}

interface Where extends Whose {
  readonly organization?: string;
  readonly warehouse?: string;
}

interface What extends Where {
  readonly role?: Role;
  readonly rights?: readonly Right[];
}

export function addMembershipCommands(program: Command, { run }: Operator): void {
  const memberships = program
    .command('memberships')
    .description('what people and machine clients may reach');

  ofSomebody(memberships.command('set'))
    .description(
      'set the role in an organization, or the rights in one of its warehouses; ' +
        'owners and admins have all rights in every warehouse, viewers at most read',
    )
    .option('--organization <id>', 'the organization, with --role')
    .addOption(new Option('--role <role>', 'the role in it').choices(ROLES))
    .option('--warehouse <id>', 'the warehouse, with --rights')
    .option('--rights <rights>', `some of ${RIGHTS.join(',')}, separated by commas`, rightsFrom)
    .action((options: What) => {
      const { organization, role, warehouse, rights } = completeChange(options);
      return run(async (registries) => {
        const subject = await subjectOf(registries, options);
        const { memberships } = registries;
        const recordOf = await recordsOf(registries, subject);
        if (organization !== undefined && role !== undefined) {
          const record = recordOf('membership_set', { organization }, { role });
          await memberships.setRole(subject, organization, role, record);
        }
        if (warehouse !== undefined && rights !== undefined) {
          const record = recordOf('membership_set', { warehouse }, { rights });
          await memberships.setRights(subject, warehouse, rights, record);
        }
        return accessReport(registries, subject, options);
      });
    });

  ofSomebody(memberships.command('remove'))
    .description('end a membership with all its rights, or only the rights in one warehouse')
    .addOption(new Option('--organization <id>', 'the organization').conflicts('warehouse'))
    .option('--warehouse <id>', 'the warehouse')
    .action((options: Where) => {
      const { organization, warehouse } = options;
      if (organization === undefined && warehouse === undefined) {
        throw new WrongUsage('name the organization or the warehouse');
      }
      return run(async (registries) => {
        const subject = await subjectOf(registries, options);
        const recordOf = await recordsOf(registries, subject);
        if (organization !== undefined) {
          const record = recordOf('membership_removed', { organization });
          await registries.memberships.remove(subject, organization, record);
        }
        if (warehouse !== undefined) {
          const record = recordOf('membership_removed', { warehouse });
          await registries.memberships.removeRights(subject, warehouse, record);
        }
        return accessReport(registries, subject);
      });
    });

  listed(ofSomebody(memberships.command('list')))
    .description('what somebody may reach now, or who reaches an organization or warehouse')
    .option('--organization <id>', 'everybody and everything in this organization')
    .option('--warehouse <id>', 'everybody and everything that reaches this warehouse')
    .addOption(new Option('--role <role>', 'only with this role in it').choices(ROLES))
    .action(({ organization, warehouse, role, ...options }: What & ListOptions) => {
      const places = [organization, warehouse].filter((id) => id !== undefined);
      if (places.length === 0) {
        if (role) throw new WrongUsage('--role needs --organization or --warehouse');
        return run(async (registries) =>
          accessReport(registries, await subjectOf(registries, options)),
        );
      }
      const [id = '', ...others] = [...places, options.account, options.client].filter(
        (one) => one !== undefined,
      );
      if (others.length > 0) {
        throw new WrongUsage('say one of --account, --client, --organization and --warehouse');
      }
      const kind = organization === undefined ? 'warehouse' : 'organization';
      return run(async ({ access }) => {
        const members = await access.reachedBy(kind, id);
        const chosen = members.filter((member) => member.role === (role ?? member.role));
        return listReport(chosen, options, memberList(kind));
      });
    });
}

const memberList = (kind: PlaceKind): ListForm<Member> => ({
  heading: ['ID', 'NAME', 'ROLE', ...(kind === 'warehouse' ? ['RIGHTS'] : []), 'STATE'],
  row: ({ id, name, email, role, rights, isSuspended }) => [
    id,
    email === undefined ? `${name} (machine)` : email,
    role,
    ...(kind === 'warehouse' ? [rights.join(',')] : []),
    isSuspended ? 'suspended' : 'active',
  ],
  value: ({ rights, isSuspended, ...member }) => ({
    ...member,
    email: member.email ?? null,
    ...(kind === 'warehouse' && { rights }),
    suspended: isSuspended,
  }),
  nothing: 'Nobody reaches it.',
});

function ofSomebody(command: Command): Command {
  return command
    .addOption(
      new Option('--account <account>', 'the person: email address or account ID').conflicts(
        'client',
      ),
    )
    .option('--client <id>', 'or the machine client');
}

function completeChange(options: What): What {
  const { organization, role, warehouse, rights } = options;
  if ((organization === undefined) !== (role === undefined)) {
    throw new WrongUsage('--organization and --role go together');
  }
  if ((warehouse === undefined) !== (rights === undefined)) {
    throw new WrongUsage('--warehouse and --rights go together');
  }
  if (organization === undefined && warehouse === undefined) {
    throw new WrongUsage('say --organization and --role, or --warehouse and --rights');
  }
  return options;
}

function rightsFrom(list: string): Right[] {
  return list.split(',').map((word) => {
    const right = RIGHTS.find((known) => known === word.trim());
    if (right) return right;
    throw new WrongUsage(`there is no right '${word}': use some of ${RIGHTS.join(',')}`);
  });
}

async function subjectOf(registries: Registries, { account, client }: Whose): Promise<Subject> {
  if (account !== undefined) return { accountId: (await accountNamed(registries, account)).id };
  if (client === undefined) throw new WrongUsage('say whose: --account or --client');
  return { clientId: (await clientNamed(registries, client)).id };
}

/** The records of changes of one subject's memberships, with the names of where they are. */
async function recordsOf({ organizations, recordChange }: Registries, subject: Subject) {
  const all = await organizations.list();
  const warehouses = all.flatMap((organization) =>
    organization.warehouses.map((warehouse) => ({ ...warehouse, organization })),
  );
  return (
    action: 'membership_set' | 'membership_removed',
    where: { organization: string } | { warehouse: string },
    what: { role?: Role; rights?: readonly Right[] } = {},
  ): ChangeRecord => {
    const warehouse =
      'warehouse' in where ? warehouses.find(({ id }) => id === where.warehouse) : undefined;
    const organization =
      'organization' in where
        ? all.find(({ id }) => id === where.organization)
        : warehouse?.organization;
    return recordChange(action, {
      ...('accountId' in subject && { accountId: subject.accountId }),
      details: {
        ...('clientId' in subject && { client_id: subject.clientId }),
        ...(organization && {
          organization_id: organization.id,
          organization_name: organization.name,
        }),
        ...(warehouse && { warehouse_id: warehouse.id, warehouse_name: warehouse.name }),
        ...what,
      },
    });
  };
}

/** What the subject reaches now, in the form that introspection gives to the GraphQL API. */
async function accessReport(
  registries: Registries,
  subject: Subject,
  asked: Pick<What, 'warehouse' | 'rights'> = {},
): Promise<Report> {
  const organizations = await registries.access.accessOf(subject);
  const rows = organizations.flatMap(({ id, name, role, warehouses }) => [
    [id, name, role],
    ...warehouses.map((warehouse) => [
      `  ${warehouse.id}`,
      `  ${warehouse.name}`,
      warehouse.rights.join(','),
    ]),
  ]);
  const value =
    'accountId' in subject ? { account_id: subject.accountId } : { client_id: subject.clientId };
  const text = table(['ID', 'NAME', 'ROLE OR RIGHTS'], rows, 'They reach nothing now.');
  const warning = await notDone(registries, organizations, asked);
  return {
    value: { ...value, organizations, ...(warning && { warnings: [warning] }) },
    text: warning ? `${text}\nWarning: ${warning}` : text,
  };
}

/** Where the role decides otherwise than the rights that were asked for. */
async function notDone(
  registries: Registries,
  organizations: readonly Organization[],
  { warehouse, rights = [] }: Pick<What, 'warehouse' | 'rights'>,
): Promise<string | undefined> {
  if (warehouse === undefined) return undefined;
  const all = await registries.organizations.list();
  const home = all.find(({ warehouses }) => warehouses.some(({ id }) => id === warehouse));
  const { role, warehouses = [] } = organizations.find(({ id }) => id === home?.id) ?? {};
  const reached = warehouses.find(({ id }) => id === warehouse)?.rights ?? [];
  const missing = rights.filter((right) => !reached.includes(right));
  if (missing.length > 0) {
    return `${missing.join(', ')} was not given: a ${role} has at most read; it counts from a role of member on`;
  }
  if (reached.length === rights.length) return undefined;
  return `the ${role} has all rights in every warehouse, whatever is set for one`;
}
