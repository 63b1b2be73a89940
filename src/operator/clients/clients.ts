/** `operator clients`: manages clients of every kind. Only operators can add public clients and machine clients. */
import { type Command, Option } from 'commander';
import { noticeMail } from '../../accounts/mail/account-mail.ts';
import { hasMailbox } from '../../accounts/mail/mail.ts';
import { type Client, type ClientKind, type ClientLinks, LINKS, normalizeLinks } from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-edits.ts';
import { requireAskable } from '../../clients/client-registry.ts';
import { peopleText } from '../../clients/client-row.ts';
import { checkRedirectUris, type Naming, normalizeClientName } from '../../clients/client-rules.ts';
import { refuseRenewal } from '../../clients/client-secrets.ts';
import { tryMail } from '../accounts/mailing.ts';
import { needsOneOf } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutClient, accountNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { addList, type ListForm } from '../command/report.ts';
import { clientRecord, type Registries } from '../registries.ts';
import { clientReport, clientValue, shownClient, stateOf } from './client-report.ts';

const KINDS: readonly ClientKind[] = ['confidential', 'public', 'machine', 'resource-server'];

interface NewClientOptions {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUri: readonly string[];
  readonly native: boolean;
  readonly owner?: string;
  readonly allowName?: true;
}

const ALLOW_NAME = [
  '--allow-name',
  'accept a name that people could mistake for another name: you vouch for the client',
] as const;

export function addClientCommands(program: Command, operator: Operator): void {
  const clients = program.command('clients').description('registered OAuth clients');
  addAdd(clients, operator);
  addClientList(clients, operator);
  addShow(clients, operator);
  addUpdate(clients, operator);
  addSuspendAndResume(clients, operator);
  addTransfer(clients, operator);
  addRotateSecret(clients, operator);
  addRemoveSecret(clients, operator);
  addRenew(clients, operator);
  addDelete(clients, operator);
}

function addAdd(clients: Command, { run }: Operator): void {
  clients
    .command('add')
    .description('register a client and show its secret once')
    .addOption(new Option('--kind <kind>', 'kind of the client').choices(KINDS).makeOptionMandatory())
    .requiredOption('--name <name>', 'the name that people see when they approve the client')
    .option('--redirect-uri <uri>', 'redirect URI for its codes; can be given up to 20 times', another, [])
    .option('--native', 'an installed client: may use loopback and private-use URIs', false)
    .option('--owner <account>', 'its owner: email address or account ID')
    .option(...ALLOW_NAME)
    .action((options: NewClientOptions) => run((registries) => addClient(registries, options)));
}

async function addClient(
  registries: Registries,
  { kind, name, redirectUri: redirectUris, native, owner, allowName }: NewClientOptions,
): Promise<Report> {
  const account = owner === undefined ? undefined : await accountNamed(registries, owner);
  const ownerAccountId = account?.id;
  const { client, secret } = await registries.clients.add(
    { kind, name, redirectUris, isNative: native, ownerAccountId, naming: namingBy(allowName) },
    (tx, id) => clientRecord(registries, 'client_added', { id, name: normalizeClientName(name), ownerAccountId })(tx),
  );
  const { warnings } = checkRedirectUris(redirectUris, { native });
  const cautions = warnings.map(({ index, message }) => {
    return `Warning, ${index === undefined ? '' : redirectUris[index]}: ${message}`;
  });
  return {
    value: {
      ...clientValue(client),
      ...(secret !== undefined && { client_secret: secret }),
      ...(warnings.length > 0 && { warnings }),
    },
    text: [
      `Added ${kind} client: ${client.name}`,
      `Client ID:     ${client.id}`,
      ...(secret === undefined ? [] : [`Client secret: ${secret} (shown only once)`]),
      ...cautions,
    ].join('\n'),
  };
}

function addClientList(clients: Command, operator: Operator): void {
  addList(clients, operator, LIST, async (registries, page, options: ClientFilters) => {
    const { kind, owner, suspended: isSuspended } = options;
    const ownerAccountId = owner && (await accountNamed(registries, owner)).id;
    return registries.clients.list(page, { kind, ownerAccountId, isSuspended });
  })
    .description('list every client, oldest first')
    .addOption(new Option('--kind <kind>', 'only this kind').choices(KINDS))
    .option('--owner <account>', 'only clients of this person: email address or account ID')
    .option('--suspended', 'only suspended clients');
}

function addShow(clients: Command, operator: Operator): void {
  const show = clients.command('show').description('show one client and its refused requests of the last 7 days');
  aboutClient(show, operator, (client, registries) => shownClient(registries, client));
}

const LIST: ListForm<Client> = {
  heading: ['ID', 'KIND', 'NAME', 'OWNER', 'STATE'],
  row: (client) => [client.id, client.kind, client.name, client.ownerName ?? '(operator)', stateOf(client)],
  value: clientValue,
  nothing: 'There are no clients.',
};

interface ClientFilters {
  readonly kind?: ClientKind;
  readonly owner?: string;
  readonly suspended?: true;
}

function addUpdate(clients: Command, operator: Operator): void {
  const update = clients
    .command('update')
    .description('change what people see of a client of any kind, and its redirect URIs')
    .option('--name <name>', 'the name that people see when they approve the client')
    .option(...ALLOW_NAME)
    .option('--redirect-uri <uri>', 'replaces all its redirect URIs; can be given up to 20 times', another, [])
    .option('--homepage <url>', 'page about the client, shown when people approve it; empty: none')
    .option('--support <url>', 'page where its users get help; empty: none')
    .option('--privacy <url>', 'page with its privacy policy; empty: none')
    .option('--verified', 'mark it as reviewed in its current form: shown when people approve it')
    .addOption(new Option('--unverified', 'remove that mark').conflicts('verified'))
    .option('--always-ask', 'ask people to approve each request, even if they have approved the client before')
    .option('--no-always-ask', 'ask people once');
  const changes = ['name', 'redirectUri', ...LINKS, 'verified', 'unverified', 'alwaysAsk'];
  needsOneOf(update, changes, 'give at least one change: see --help');
  aboutClient(update, operator, async (client, registries, options: UpdateOptions) => {
    const { verified, unverified, name, redirectUri: redirectUris, allowName, alwaysAsk } = options;
    // Check before the first change, because each change is a transaction of its own.
    if (alwaysAsk !== undefined) requireAskable(client);
    const isLinked = LINKS.some((kind) => options[kind] !== undefined);
    const changes: Partial<ClientChanges> = {
      ...(name !== undefined && { name: normalizeClientName(name) }),
      ...(redirectUris.length > 0 && { redirectUris }),
      ...(isLinked && { links: normalizeLinks({ ...client.links, ...options }) }),
    };
    const details = {
      ...(changes.name !== undefined && { client_name: changes.name }),
      ...(changes.redirectUris && { redirect_uris: redirectUris }),
      ...changes.links,
    };
    const record = clientRecord(registries, 'client_changed', client, details);
    const { clients } = registries;
    const isEdited = Object.keys(changes).length > 0;
    const naming = namingBy(allowName);
    let edited = isEdited ? await clients.edit(client.id, changes, record, { naming }) : client;
    if (alwaysAsk !== undefined) {
      const asking = clientRecord(registries, 'client_changed', edited, { always_ask: alwaysAsk ? 'yes' : 'no' });
      edited = await clients.setAlwaysAsks(client.id, alwaysAsk, 'operator', asking);
    }
    if (!verified && !unverified) return clientReport(edited, 'Changed.');
    const marking = clientRecord(registries, 'client_changed', edited, { verified: verified ? 'yes' : 'no' });
    const marked = await clients.verify(client.id, verified === true, marking);
    return clientReport(marked, verified ? VERIFIED : 'Changed.');
  });
}

const VERIFIED = 'Verified in the state shown here. If you reviewed another state, run this command with --unverified.';

interface UpdateOptions extends ClientLinks {
  readonly name?: string;
  readonly allowName?: true;
  readonly redirectUri: readonly string[];
  readonly verified?: true;
  readonly unverified?: true;
  readonly alwaysAsk?: boolean;
}

const SUSPENSION = [
  ['suspend', 'client_suspended', 'Suspended.', 'refuse the client and everything issued to it, from now on'],
  ['resume', 'client_resumed', 'Resumed.', 'end a suspension'],
] as const;

function addSuspendAndResume(clients: Command, operator: Operator): void {
  for (const [change, action, done, description] of SUSPENSION) {
    const command = clients.command(change).description(description);
    aboutClient(command, operator, async (client, registries) => {
      const record = clientRecord(registries, action, client);
      return clientReport(await registries.clients[change](client.id, record), done);
    });
  }
}

function addTransfer(clients: Command, operator: Operator): void {
  const transfer = clients
    .command('transfer')
    .description('give a client to another owner')
    .addOption(new Option('--owner <account>', 'the new owner: email address or account ID'))
    .addOption(new Option('--to-operator', 'no owner: the operator provides the client').conflicts('owner'));
  needsOneOf(transfer, ['owner', 'toOperator'], 'name the new owner');
  aboutClient(transfer, operator, async (client, registries, { owner }: { readonly owner?: string }) => {
    const account = owner === undefined ? undefined : await accountNamed(registries, owner);
    if (client.ownerAccountId === account?.id) return clientReport(client, 'Nothing changed: same owner.');
    // Record the transfer in the logs of the old and the new owner, or once without an owner if there is neither.
    const logs = new Set([client.ownerAccountId, account?.id]);
    if (logs.size > 1) logs.delete(undefined);
    const moved = await registries.clients.transfer(client.id, account?.id, async (tx) => {
      for (const ownerAccountId of logs) {
        const about = { id: client.id, name: client.name, ownerAccountId };
        await clientRecord(registries, 'client_transferred', about)(tx);
      }
    });
    return clientReport(moved, 'Transferred.');
  });
}

function addRotateSecret(clients: Command, operator: Operator): void {
  const rotate = clients
    .command('rotate-secret')
    .description('add a second secret next to the current one, and show it once');
  aboutClient(rotate, operator, async (found, registries) => {
    const { client, secret } = await registries.clients.addSecret(found.id, (tx, { lastFour }) =>
      clientRecord(registries, 'client_secret_added', found, { last_four: lastFour })(tx),
    );
    return {
      value: { ...clientValue(client), client_secret: secret },
      text: [
        `Client secret: ${secret} (shown only once)`,
        'The previous secret stays valid until `clients remove-secret` removes it.',
      ].join('\n'),
    };
  });
}

function addRemoveSecret(clients: Command, operator: Operator): void {
  const remove = addYesOption(clients.command('remove-secret'))
    .description('remove a secret, which is refused from now on; the last one cannot be removed')
    .requiredOption('--secret <secret>', 'its ID, or its last four characters');
  aboutClient(remove, operator, async (client, registries, options: { readonly secret: string }) => {
    const [secret, ...others] = client.secrets.filter((live) => [live.id, live.lastFour].includes(options.secret));
    const secretId = secret && others.length === 0 ? secret.id : options.secret;
    // Ask only if another secret remains: the registry refuses to remove the last secret.
    if (secret && client.secrets.length > 1) {
      await operator.confirm(`Removes the secret …${secret.lastFour} of ${client.name}.`);
    }
    const left = await registries.clients.removeSecret(client.id, secretId, (tx, { lastFour }) =>
      clientRecord(registries, 'client_secret_removed', client, { last_four: lastFour })(tx),
    );
    const tokens = 'Access tokens that were requested with it work until they expire: `revoke --client` ends them.';
    return clientReport(left, client.kind === 'machine' && !secret?.leakedAt ? `Removed. ${tokens}` : 'Removed.');
  });
}

function addRenew(clients: Command, operator: Operator): void {
  const renew = addYesOption(clients.command('renew')).description(
    'after a theft at the partner: end all secrets and tokens, and show one new secret once; no person approves again',
  );
  aboutClient(renew, operator, async (found, registries) => {
    refuseRenewal(found.kind);
    await operator.confirm(`Ends every secret, access token and code of ${found.name}.`);
    const { print, stderr } = operator;
    const { client, secret } = await registries.clients.renew(found.id, (tx, details) =>
      clientRecord(registries, 'client_renewed', found, details)(tx),
    );
    // Print the client's new secret before mailing, because mailing may be slow or fail.
    print({
      value: { ...(client ? clientValue(client) : { client_id: found.id }), client_secret: secret },
      text: `Client secret: ${secret} (shown only once)`,
    });
    const failure = await mailRenewal(registries, found).catch((error: Error) => error.message);
    if (failure !== undefined) stderr.write(`Warning: its owner was not mailed (${failure}).\n`);
    return {
      value: undefined,
      text: [
        'All other secrets, access tokens and codes of the client have ended. Its refresh tokens work once more,',
        'but only together with this secret: the client gets new tokens for its people without asking them.',
      ].join('\n'),
    };
  });
}

/** Returns why the mail to the owner was not accepted; undefined if it was, or if there is no owner to mail. */
async function mailRenewal({ accounts, ...registries }: Registries, client: Client): Promise<string | undefined> {
  const owner = client.ownerAccountId === undefined ? undefined : await accounts.find(client.ownerAccountId);
  if (!owner || owner.isSuspended || !hasMailbox(owner)) return undefined;
  const event = { issuer: registries.settings.issuer, at: new Date(), about: client.name };
  return (await tryMail(registries, noticeMail(owner, 'client_renewed', event))).failure;
}

function addDelete(clients: Command, operator: Operator): void {
  const remove = addYesOption(clients.command('delete')).description(
    'delete a client and everything issued to it, for good',
  );
  aboutClient(remove, operator, async (client, registries) => {
    const { id, name } = client;
    const connected = await registries.connections.countOf(id);
    await operator.confirm(`Deletes ${name} and disconnects the ${peopleText(connected)} people who use it.`);
    const people = await registries.removeClient(id, (tx, connected) =>
      clientRecord(registries, 'client_deleted', client, { people: connected })(tx),
    );
    return {
      value: { ...clientValue(client), deleted: true, disconnected_people: people },
      text: `Deleted client ${id}: ${name}. Disconnected people: ${people}.`,
    };
  });
}

const namingBy = (allowName: true | undefined): Naming => (allowName ? 'by the operator' : 'by its owner');

const another = (uri: string, before: readonly string[]): string[] => [...before, uri];
