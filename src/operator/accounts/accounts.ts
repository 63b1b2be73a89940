/** `operator accounts`: the people who may sign in. */
import { type Command, Option } from 'commander';
import {
  ACCOUNT_STATES,
  type Account,
  type AccountState,
  type ListedAccount,
  type SignInMethodKind,
  stateOf,
} from '../../accounts/account.ts';
import { listStrongMethods } from '../../accounts/strong-sign-ins.ts';
import { Refusal } from '../../base/refusal.ts';
import { type OwnedClient, peopleText } from '../../clients/client-row.ts';
import { needsOneOf, type PasswordOptions, readPassword } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutAccount } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { addList, type ListForm } from '../command/report.ts';
import type { Registries } from '../registries.ts';
import { invite } from './mailing.ts';
import { addLinkCommands, addPasskeyCommands } from './sign-in-methods.ts';

export function addAccountCommands(program: Command, operator: Operator): void {
  addAccounts(program, operator);
  addLinkCommands(program, operator);
  addPasskeyCommands(program, operator);
}

function addAccounts(program: Command, operator: Operator): void {
  const { run } = operator;
  const accounts = program.command('accounts').description('people who may sign in');

  accounts
    .command('add')
    .description('add an account; its password comes from standard input or from the options below')
    .requiredOption('--email <email>', 'the email address to sign in with')
    .requiredOption('--name <name>', 'the name shown on pages')
    .option('--password-file <file>', 'read the password from a file')
    .addOption(new Option('--generate-password', 'generate a password and show it once').conflicts('passwordFile'))
    .addOption(
      new Option(
        '--invite',
        'print a link with which the person sets the password, and mail it if mail is configured',
      ).conflicts(['passwordFile', 'generatePassword']),
    )
    .action(async (options: NewAccountOptions) => {
      const { email, name, invite: isInvited = false } = options;
      const given = isInvited ? undefined : await readPassword(options, operator);
      await run(async (registries) => {
        const { accounts, recordChange } = registries;
        const account = await accounts.add({ email, name, password: given?.password }, (tx, { id }) =>
          recordChange('account_added', { accountId: id })(tx),
        );
        const report = changeReport('Added', account);
        if (isInvited) return joined(report, await invite(registries, account));
        if (!given?.isGenerated) return report;
        const { password } = given;
        return joined(report, { value: { password }, text: `Password, shown only once: ${password}` });
      });
    });

  aboutAccount(accounts.command('invite'), operator, async (account, registries) => {
    if (account.isSuspended) throw suspended(account);
    return joined(changeReport('Invited', account), await invite(registries, account));
  }).description('create a link with which the person sets the password, or signs in if passwords are off');

  addList(accounts, operator, LIST, async (registries, page, options: AccountFilters) => {
    const owing = options.owingAPasskey && listStrongMethods(registries.settings.signIn);
    return registries.accounts.list({ ...page, state: options.state, owing });
  })
    .description('list every account, oldest first')
    .addOption(new Option('--state <state>', 'only those in this state').choices(ACCOUNT_STATES))
    .option(
      '--owing-a-passkey',
      'only owners and admins of organizations and owners of clients (see sign_in.require) ' +
        'who have neither a passkey nor a provider',
    );

  const update = accounts
    .command('update')
    .description(
      'change the name shown on pages, or the email address to sign in with; links sent to the old one stop working',
    )
    .option('--name <name>', 'the name shown on pages')
    .option('--new-email <email>', 'the new email address to sign in with');
  needsOneOf(update, ['name', 'newEmail'], 'give --name, --new-email or both');
  aboutAccount(update, operator, async (account, registries, { name, newEmail }: AccountChanges) => {
    const { accounts, recordChange } = registries;
    const { id: accountId } = account;
    const recordOf = (field: string) => recordChange('account_changed', { accountId, details: { changed: [field] } });
    let changed = account;
    // Change the email address first, because a refusal of an address is more likely than one of a name.
    if (newEmail !== undefined) changed = await accounts.changeEmail(accountId, newEmail, recordOf('email'));
    if (name !== undefined) changed = await accounts.rename(accountId, name, recordOf('name'));
    return changeReport('Changed', changed);
  });

  aboutAccount(addYesOption(accounts.command('delete')), operator, async (account, registries) => {
    await refuseOwner(account, registries);
    const { text, counts } = await reachOf(account, registries);
    const returns = account.externalId ? ' The next import with this external id creates the account again.' : '';
    await operator.confirm(`Deletes ${account.name} <${account.email}> with ${text}.${returns}`);
    const record = registries.recordChange('account_deleted', { accountId: account.id, details: counts });
    const { value, text: done } = changeReport('Deleted', await registries.accounts.remove(account.id, record));
    return { value: { ...value, ...counts, deleted: true }, text: done };
  }).description('delete an account and everything that acts for its person; the audit log keeps the account ID');

  for (const [change, action, done, description] of SUSPENSION) {
    const command = accounts.command(change).description(description);
    aboutAccount(command, operator, async (account, registries) => {
      const { accounts, recordChange } = registries;
      const record = recordChange(action, { accountId: account.id });
      const report = changeReport(done, await accounts[change](account.id, record));
      const owned = change === 'suspend' && (await ownedClientsReport(account, registries));
      return owned ? joined(report, owned) : report;
    });
  }
}

const LIST: ListForm<ListedAccount> = {
  heading: ['ID', 'EMAIL', 'NAME', 'STATE', 'SIGNS IN WITH'],
  row: (one) => [one.id, one.email, one.name, stateOf(one), methodWords(one)],
  value: (one) => ({ ...accountValue(one), signs_in_with: one.signInMethods }),
  nothing: 'There are no accounts.',
};

interface AccountFilters {
  readonly state?: AccountState;
  readonly owingAPasskey?: true;
}

type AccountChanges = { readonly name?: string; readonly newEmail?: string };

interface NewAccountOptions extends PasswordOptions {
  readonly email: string;
  readonly name: string;
  readonly invite?: true;
}

const SUSPENSION = [
  ['suspend', 'account_suspended', 'Suspended', 'suspend a person and the clients acting for them, and sign them out'],
  ['resume', 'account_resumed', 'Resumed', 'end a suspension: clients work again, the person signs in again'],
] as const;

async function reachOf({ id }: Account, { connections, apiKeys, access }: Registries) {
  const [connected, keys, organizations] = await Promise.all([
    connections.listOf(id),
    apiKeys.listOf(id),
    access.accessOf({ accountId: id }),
  ] as const);
  const counts = { connections: connected.length, api_keys: keys.length, organizations: organizations.length };
  const text = `${counts.connections} connections, ${counts.api_keys} API keys and memberships in ${counts.organizations} organizations`;
  return { counts, text };
}

/** Reports an account with its sign-in methods, its clients, and how many connections and API keys it has. */
export async function accountReport(registries: Registries, account: Account): Promise<Report> {
  const listed = { ...account, signInMethods: await listSignInMethods(account, registries) };
  const clients = (await registries.clients.listByOwner(account.id)).map(({ id }) => id);
  const { text, counts } = await reachOf(account, registries);
  return {
    value: { ...accountValue(account), signs_in_with: listed.signInMethods, ...counts, clients },
    text: [
      `${account.id}: ${account.name} <${account.email}>, ${stateOf(listed)}`,
      `Sign-in methods: ${methodWords(listed)}.`,
      `Created ${account.createdAt.toISOString()}; external id: ${account.externalId ?? 'none'}`,
      `The account has ${text}.`,
      ...(clients.length > 0 ? [`The account owns ${clients.join(', ')}.`] : []),
    ].join('\n'),
  };
}

export async function listSignInMethods(
  { id, hasPassword }: Account,
  { identities, passkeys }: Registries,
): Promise<readonly SignInMethodKind[]> {
  const [linked, hasPasskey] = await Promise.all([identities.listOf(id), passkeys.has(id)]);
  return [
    ...(hasPassword ? (['password'] as const) : []),
    ...(hasPasskey ? (['passkey'] as const) : []),
    ...(linked.length > 0 ? (['provider'] as const) : []),
  ];
}

export const methodWords = ({ signInMethods }: Pick<ListedAccount, 'signInMethods'>): string =>
  signInMethods.join(', ') || 'none yet';

const joined = (first: Report & { readonly value: object }, second: Report & { readonly value: object }): Report => ({
  value: { ...first.value, ...second.value },
  text: `${first.text}\n${second.text}`,
});

const suspended = ({ email }: Account): Refusal =>
  new Refusal('account_suspended', `The account ${email} is suspended.`, 'Resume the account first.');

function changeReport(done: string, account: Account): Report & { readonly value: object } {
  const { id, email, name } = account;
  return { value: accountValue(account), text: `${done} account ${id}: ${name} <${email}>.` };
}

const accountValue = ({ id, email, name, isSuspended, hasPassword, createdAt, externalId }: Account) => ({
  id,
  account_id: id,
  email,
  name,
  external_id: externalId ?? null,
  suspended: isSuspended,
  has_password: hasPassword,
  created_at: createdAt,
});

const HAND_OVER = 'To hand a client over: clients transfer CLIENT --owner ACCOUNT.';

/** Returns the effect of a suspension on the clients of the account; undefined if it owns none. */
async function ownedClientsReport(
  { id }: Account,
  { clients }: Registries,
): Promise<(Report & { readonly value: object }) | undefined> {
  const owned = await clients.listByOwner(id);
  if (owned.length === 0) return undefined;
  return {
    value: {
      owned_clients: owned.map(({ id: clientId, name, connectedPeople }) => {
        return { client_id: clientId, name, connected_people: connectedPeople };
      }),
    },
    text: [
      'The account owns clients. They keep working for the people who connected them, but no one',
      'can approve or manage them any more:',
      ...owned.map(ownedLine),
      HAND_OVER,
      'To stop a client: clients suspend CLIENT.',
    ].join('\n'),
  };
}

/** @throws Refusal `account_owns_clients` */
async function refuseOwner({ id }: Account, { clients }: Registries): Promise<void> {
  const owned = await clients.listByOwner(id);
  if (owned.length === 0) return;
  const remedy = [...owned.map(ownedLine), HAND_OVER, 'To delete a client: clients delete CLIENT.'].join('\n');
  throw new Refusal('account_owns_clients', `The account ${id} owns clients.`, remedy);
}

const ownedLine = ({ id, name, connectedPeople }: OwnedClient): string =>
  `  ${id}  ${name}, ${peopleText(connectedPeople)} ${connectedPeople === 1 ? 'person' : 'people'} connected`;
