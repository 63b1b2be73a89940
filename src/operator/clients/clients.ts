/** `operator clients`: clients of every kind. Only here are public and machine clients added. */
import { type Command, Option } from 'commander';
import {
  type Client,
  type ClientKind,
  type ClientLinks,
  LINKS,
  normalizeLinks,
} from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-edits.ts';
import { checkRedirectUris, type Naming, normalizeClientName } from '../../clients/client-rules.ts';
import { WrongUsage } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import { aboutClient, accountNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { addList, type ListForm } from '../command/report.ts';
import { clientRecord, type Registries } from '../registries.ts';
import { clientValue, report, stateOf } from './client-report.ts';

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
  'you vouch for the name, though it could be taken for that of somebody else',
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
  addDelete(clients, operator);
}

function addAdd(clients: Command, { run }: Operator): void {
  clients
    .command('add')
    .description('register a client and show its secret once')
    .addOption(new Option('--kind <kind>', 'its kind').choices(KINDS).makeOptionMandatory())
    .requiredOption('--name <name>', 'the name that people see when they approve it')
    .option('--redirect-uri <uri>', 'where it takes its codes; up to 20 times', another, [])
    .option('--native', 'an installed client: may use loopback and private-use URIs', false)
    .option('--owner <account>', 'who owns it: email address or account ID')
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
    (tx, id) => {
      const about = { id, name: normalizeClientName(name), ownerAccountId };
      return clientRecord(registries, 'client_added', about)(tx);
    },
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
      ...(secret === undefined ? [] : [`Client secret: ${secret} (shown only this once)`]),
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
    .description('every client, oldest first')
    .addOption(new Option('--kind <kind>', 'of this kind').choices(KINDS))
    .option('--owner <account>', 'owned by this person: email address or account ID')
    .option('--suspended', 'only those that are suspended');
}

const LIST: ListForm<Client> = {
  heading: ['ID', 'KIND', 'NAME', 'OWNER', 'STATE'],
  row: (client) => {
    const { id, kind, name, ownerName = '(operator)' } = client;
    return [id, kind, name, ownerName, stateOf(client)];
  },
  value: clientValue,
  nothing: 'There are no clients.',
  filters: ['kind', 'owner', 'suspended'],
};

interface ClientFilters {
  readonly kind?: ClientKind;
  readonly owner?: string;
  readonly suspended?: true;
}

function addUpdate(clients: Command, operator: Operator): void {
  const update = clients
    .command('update')
    .description('change what people see of a client, of whatever kind, and where it takes codes')
    .option('--name <name>', 'the name that people see when they approve it')
    .option(...ALLOW_NAME)
    .option(
      '--redirect-uri <uri>',
      'all that it is to have from now on; up to 20 times',
      another,
      [],
    )
    .option('--homepage <url>', 'a page about it, shown when people approve it; empty: none')
    .option('--support <url>', 'where its users get help; empty: none')
    .option('--privacy <url>', 'what it does with data; empty: none')
    .option('--verified', 'you looked at it as it is: shown when people approve it')
    .addOption(new Option('--unverified', 'take that back').conflicts('verified'))
    .hook('preAction', (command) => {
      const { client: _, redirectUri, allowName: __, ...others } = command.opts<UpdateOptions>();
      if (redirectUri.length > 0 || Object.keys(others).length > 0) return;
      throw new WrongUsage('say what is to be different: see --help');
    });
  aboutClient(update, operator, async (client, registries, options: UpdateOptions) => {
    const { verified, unverified, name, redirectUri: redirectUris, allowName } = options;
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
    const edited = isEdited
      ? await clients.edit(client.id, changes, record, {
          naming: namingBy(allowName),
        })
      : client;
    if (!verified && !unverified) return report(edited, 'Changed.');
    const mark = { verified: verified ? 'yes' : 'no' };
    const marking = clientRecord(registries, 'client_changed', edited, mark);
    return report(await clients.verify(client.id, verified === true, marking), 'Changed.');
  });
}

interface UpdateOptions extends ClientLinks {
  readonly client?: string;
  readonly name?: string;
  readonly allowName?: true;
  readonly redirectUri: readonly string[];
  readonly verified?: true;
  readonly unverified?: true;
}

function addShow(clients: Command, operator: Operator): void {
  const show = clients
    .command('show')
    .description('one client with its redirect URIs and the ends of its secrets');
  aboutClient(show, operator, async (client) => report(client));
}

const SUSPENSION = [
  ['suspend', 'client_suspended', 'Suspended.', 'refuse it and all issued to it, from now on'],
  ['resume', 'client_resumed', 'Resumed.', 'end a suspension'],
] as const;

function addSuspendAndResume(clients: Command, operator: Operator): void {
  for (const [change, action, done, description] of SUSPENSION) {
    const command = clients.command(change).description(description);
    aboutClient(command, operator, async (client, registries) => {
      const record = clientRecord(registries, action, client);
      return report(await registries.clients[change](client.id, record), done);
    });
  }
}

function addTransfer(clients: Command, operator: Operator): void {
  const transfer = clients
    .command('transfer')
    .description('give a client to another owner')
    .addOption(new Option('--owner <account>', 'the new owner: email address or account ID'))
    .addOption(new Option('--to-operator', 'nobody: the operator provides it').conflicts('owner'))
    .hook('preAction', (command) => {
      const { owner, toOperator } = command.opts<TransferOptions>();
      if (owner === undefined && !toOperator) throw new WrongUsage('name the new owner');
    });
  aboutClient(transfer, operator, async (client, registries, { owner }: TransferOptions) => {
    const account = owner === undefined ? undefined : await accountNamed(registries, owner);
    // Record it in the log of each owner, or once if there is no owner before or after.
    const logs = new Set([client.ownerAccountId, account?.id]);
    if (logs.size > 1) logs.delete(undefined);
    const moved = await registries.clients.transfer(client.id, account?.id, async (tx) => {
      for (const ownerAccountId of logs) {
        const about = { id: client.id, name: client.name, ownerAccountId };
        await clientRecord(registries, 'client_transferred', about)(tx);
      }
    });
    return report(moved, 'Transferred.');
  });
}

function addRotateSecret(clients: Command, operator: Operator): void {
  const rotate = clients
    .command('rotate-secret')
    .description('add a second secret beside the one in use, and show it once');
  aboutClient(rotate, operator, async (found, registries) => {
    const { client, secret } = await registries.clients.addSecret(found.id, (tx, { lastFour }) =>
      clientRecord(registries, 'client_secret_added', found, { last_four: lastFour })(tx),
    );
    return {
      value: { ...clientValue(client), client_secret: secret },
      text: [
        `Client secret: ${secret} (shown only this once)`,
        'The one before it stays good until `clients remove-secret` ends it.',
      ].join('\n'),
    };
  });
}

function addRemoveSecret(clients: Command, operator: Operator): void {
  const remove = addYesOption(clients.command('remove-secret'))
    .description('refuse a secret from now on; the last one stays')
    .requiredOption('--secret <secret>', 'its ID, or its last four characters');
  aboutClient(
    remove,
    operator,
    async (client, registries, options: { readonly secret: string }) => {
      const [secret, ...others] = client.secrets.filter((live) =>
        [live.id, live.lastFour].includes(options.secret),
      );
      const secretId = secret && others.length === 0 ? secret.id : options.secret;
      // Do not ask about a removal that the registry refuses.
      if (secret && client.secrets.length > 1) {
        const what = `Removes the secret …${secret.lastFour} of ${client.name}.`;
        await operator.confirm(what);
      }
      const left = await registries.clients.removeSecret(client.id, secretId, (tx, { lastFour }) =>
        clientRecord(registries, 'client_secret_removed', client, { last_four: lastFour })(tx),
      );
      return report(left, 'Removed.');
    },
  );
}

function addDelete(clients: Command, operator: Operator): void {
  const remove = addYesOption(clients.command('delete')).description(
    'end a client and everything issued to it, for good',
  );
  aboutClient(remove, operator, async (client, registries) => {
    const { id, name } = client;
    const connected = await registries.connections.countOf(id);
    const what = `Deletes ${name} and disconnects the ${connected} people who use it.`;
    await operator.confirm(what);
    const people = await registries.removeClient(id, (tx, connected) =>
      clientRecord(registries, 'client_deleted', client, { people: connected })(tx),
    );
    return {
      value: { ...clientValue(client), deleted: true, disconnected_people: people },
      text: `Deleted client ${id}: ${name}. Disconnected people: ${people}.`,
    };
  });
}

interface TransferOptions {
  readonly owner?: string;
  readonly toOperator?: true;
}

const namingBy = (allowName: true | undefined): Naming =>
  allowName ? 'by the operator' : 'by its owner';

const another = (uri: string, before: readonly string[]): string[] => [...before, uri];
