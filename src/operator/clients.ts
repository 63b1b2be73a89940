/** `operator clients`: clients of every kind. Public ones and machines come to be only here. */
import { type Command, Option } from 'commander';
import type { Action } from '../accounts/activity.ts';
import type { Client, ClientKind } from '../clients/client.ts';
import { checkRedirectUris } from '../clients/client-rules.ts';
import { clientText, clientValue, stateOf } from './client-report.ts';
import { askedFirst, type ConfirmationOptions, confirmed } from './confirmation.ts';
import { WrongUsage } from './failure.ts';
import { accountNamed, clientNamed, oneName } from './names.ts';
import type { Operator } from './operator.ts';
import type { Registries } from './registries.ts';
import { type Report, table } from './report.ts';

const KINDS: readonly ClientKind[] = ['confidential', 'public', 'machine', 'resource-server'];

interface NewClientOptions {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUri: readonly string[];
  readonly native: boolean;
  readonly owner?: string;
}

export function addClientCommands(program: Command, operator: Operator): void {
  const clients = program.command('clients').description('registered OAuth clients');
  addAdd(clients, operator);
  addList(clients, operator);
  addShow(clients, operator);
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
    .action((options: NewClientOptions) => run((registries) => addClient(registries, options)));
}

async function addClient(
  registries: Registries,
  { kind, name, redirectUri: redirectUris, native, owner }: NewClientOptions,
): Promise<Report> {
  const account = owner === undefined ? undefined : await accountNamed(registries, owner);
  const ownerAccountId = account?.id;
  const { client, secret } = await registries.clients.add(
    { kind, name, redirectUris, isNative: native, ownerAccountId },
    (tx, id) => {
      const about = { id, name: name.trim(), ownerAccountId };
      return recordOf(registries, 'client_added', about)(tx);
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

function addList(clients: Command, { run }: Operator): void {
  clients
    .command('list')
    .description('every client, oldest first')
    .action(() =>
      run(async (registries) => {
        const all = await registries.clients.list();
        const rows = all.map((client) => {
          const { id, kind, name, ownerName = '(operator)' } = client;
          return [id, kind, name, ownerName, stateOf(client)];
        });
        return {
          value: all.map(clientValue),
          text: table(['ID', 'KIND', 'NAME', 'OWNER', 'STATE'], rows, 'There are no clients.'),
        };
      }),
    );
}

function addShow(clients: Command, operator: Operator): void {
  const show = clients
    .command('show')
    .description('one client with its redirect URIs and the ends of its secrets');
  aboutOne(show, operator, async (client) => report(client));
}

const SUSPENSION = [
  ['suspend', 'client_suspended', 'Suspended.', 'refuse it and all issued to it, from now on'],
  ['resume', 'client_resumed', 'Resumed.', 'end a suspension'],
] as const;

function addSuspendAndResume(clients: Command, operator: Operator): void {
  for (const [change, action, done, description] of SUSPENSION) {
    const command = clients.command(change).description(description);
    aboutOne(command, operator, async (client, registries) => {
      const record = recordOf(registries, action, client);
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
  aboutOne(transfer, operator, async (client, registries, { owner }: TransferOptions) => {
    const account = owner === undefined ? undefined : await accountNamed(registries, owner);
    // In the log of both, or once where nobody owned it and nobody will.
    const logs = new Set([client.ownerAccountId, account?.id]);
    if (logs.size > 1) logs.delete(undefined);
    const moved = await registries.clients.transfer(client.id, account?.id, async (tx) => {
      for (const ownerAccountId of logs) {
        const about = { id: client.id, name: client.name, ownerAccountId };
        await recordOf(registries, 'client_transferred', about)(tx);
      }
    });
    return report(moved, 'Transferred.');
  });
}

function addRotateSecret(clients: Command, operator: Operator): void {
  const rotate = clients
    .command('rotate-secret')
    .description('add a second secret beside the one in use, and show it once');
  aboutOne(rotate, operator, async (found, registries) => {
    const { client, secret } = await registries.clients.addSecret(found.id, (tx, { lastFour }) =>
      recordOf(registries, 'client_secret_added', found, { last_four: lastFour })(tx),
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
  const remove = askedFirst(clients.command('remove-secret'))
    .description('refuse a secret from now on; the last one stays')
    .requiredOption('--secret <secret>', 'its ID, or its last four characters');
  aboutOne(remove, operator, async (client, registries, options: RemoveSecretOptions) => {
    const [secret, ...others] = client.secrets.filter((live) =>
      [live.id, live.lastFour].includes(options.secret),
    );
    const secretId = secret && others.length === 0 ? secret.id : options.secret;
    // What the registry refuses is not asked about.
    if (secret && client.secrets.length > 1) {
      const what = `Removes the secret …${secret.lastFour} of ${client.name}.`;
      await confirmed(what, options, operator);
    }
    const left = await registries.clients.removeSecret(client.id, secretId, (tx, { lastFour }) =>
      recordOf(registries, 'client_secret_removed', client, { last_four: lastFour })(tx),
    );
    return report(left, 'Removed.');
  });
}

function addDelete(clients: Command, operator: Operator): void {
  const remove = askedFirst(clients.command('delete')).description(
    'end a client and everything issued to it, for good',
  );
  aboutOne(remove, operator, async (client, registries, options: ConfirmationOptions) => {
    const { id, name } = client;
    const connected = await registries.connections.countOf(id);
    const what = `Deletes ${name} and disconnects the ${connected} people who use it.`;
    await confirmed(what, options, operator);
    const people = await registries.clients.remove(id, (tx, connected) =>
      recordOf(registries, 'client_deleted', client, { people: connected })(tx),
    );
    return {
      value: { ...clientValue(client), deleted: true, disconnected_people: people },
      text: `Deleted client ${id}: ${name}. Disconnected people: ${people}.`,
    };
  });
}

/** Makes it a command about one client, which is there when `work` begins. */
function aboutOne<Options extends object>(
  command: Command,
  { run }: Operator,
  work: (client: Client, registries: Registries, options: Options) => Promise<Report>,
): void {
  command
    .argument('[client]', 'client ID')
    .option('--client <id>', 'the same, as an option')
    .action((argument: string | undefined, options: Options & { readonly client?: string }) => {
      const id = oneName(argument, options.client, 'a client');
      return run(async (registries) =>
        work(await clientNamed(registries, id), registries, options),
      );
    });
}

/** @param done what was done to it; nothing where it is only shown. */
const report = (client: Client, done?: string): Report => ({
  value: clientValue(client),
  text: [clientText(client), done].filter(Boolean).join('\n'),
});

interface RemoveSecretOptions extends ConfirmationOptions {
  readonly secret: string;
}

interface TransferOptions {
  readonly owner?: string;
  readonly toOperator?: true;
}

type RecordedClient = Pick<Client, 'id' | 'name'> & { ownerAccountId?: string | undefined };

/** In the log of the owner, where there is one. */
const recordOf = (
  { recordChange }: Registries,
  action: Action,
  { id, name, ownerAccountId }: RecordedClient,
  details: Readonly<Record<string, string | number>> = {},
) =>
  recordChange(action, {
    accountId: ownerAccountId,
    details: { client_id: id, client_name: name, ...details },
  });

const another = (uri: string, before: readonly string[]): string[] => [...before, uri];
