/** `operator clients`: clients of every kind. Public ones and machines come to be only here. */
import { type Command, Option } from 'commander';
import type { Client, ClientKind } from '../clients/client.ts';
import { checkRedirectUris } from '../clients/client-rules.ts';
import { accountNamed, clientNamed, oneName } from './names.ts';
import type { Operator } from './operator.ts';
import { table } from './report.ts';

const KINDS: readonly ClientKind[] = ['confidential', 'public', 'machine', 'resource-server'];

interface NewClientOptions {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUri: readonly string[];
  readonly native: boolean;
  readonly owner?: string;
}

export function addClientCommands(program: Command, { run }: Operator): void {
  const clients = program.command('clients').description('registered OAuth clients');

  clients
    .command('add')
    .description('register a client and show its secret once')
    .addOption(new Option('--kind <kind>', 'its kind').choices(KINDS).makeOptionMandatory())
    .requiredOption('--name <name>', 'the name that people see when they approve it')
    .option('--redirect-uri <uri>', 'where it takes its codes; up to 20 times', another, [])
    .option('--native', 'an installed client: may use loopback and private-use URIs', false)
    .option('--owner <account>', 'who owns it: email address or account ID')
    .action(({ kind, name, redirectUri: redirectUris, native, owner }: NewClientOptions) =>
      run(async (registries) => {
        const account = owner === undefined ? undefined : await accountNamed(registries, owner);
        const { client, secret } = await registries.clients.add({
          ...{ kind, name, redirectUris, isNative: native },
          ownerAccountId: account?.id,
        });
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
      }),
    );

  clients
    .command('list')
    .description('every client, oldest first')
    .action(() =>
      run(async (registries) => {
        const all = await registries.clients.list();
        const rows = all.map((client) => [
          ...[client.id, client.kind, client.name, client.ownerName ?? '(operator)'],
          stateOf(client),
        ]);
        return {
          value: all.map(clientValue),
          text: table(['ID', 'KIND', 'NAME', 'OWNER', 'STATE'], rows, 'There are no clients.'),
        };
      }),
    );

  const about = [
    ['show', '', 'one client with its redirect URIs and the ends of its secrets'],
    ['suspend', 'Suspended.', 'refuse the client and everything issued to it, from now on'],
    ['resume', 'Resumed.', 'end a suspension'],
  ] as const;
  for (const [change, done, description] of about) {
    clients
      .command(change)
      .description(description)
      .argument('[client]', 'client ID')
      .option('--client <id>', 'the same, as an option')
      .action((argument: string | undefined, options: { client?: string }) => {
        const id = oneName(argument, options.client, 'a client');
        return run(async (registries) => {
          const found = await clientNamed(registries, id);
          const client = change === 'show' ? found : await registries.clients[change](id);
          const text = [clientText(client), done].filter(Boolean).join('\n');
          return { value: clientValue(client), text };
        });
      });
  }
}

const another = (uri: string, before: readonly string[]): string[] => [...before, uri];

const stateOf = ({ isSuspended }: Client): string => (isSuspended ? 'suspended' : 'active');

function clientText(client: Client): string {
  const lines = [
    ['Client ID', client.id],
    ['Name', client.name],
    ['Kind', client.isNative ? `${client.kind}, native` : client.kind],
    ['Owner', client.ownerName ?? 'provided by the operator'],
    ['State', stateOf(client)],
    ['Created', client.createdAt.toISOString()],
    ...client.redirectUris.map((uri) => ['Redirect URI', uri]),
    ...client.secrets.map(({ lastFour, createdAt, lastUsedAt }) => [
      'Secret',
      `…${lastFour}, made ${createdAt.toISOString()}, ` +
        (lastUsedAt ? `last used ${lastUsedAt.toISOString()}` : 'never used'),
    ]),
  ];
  return lines.map(([label = '', value = '']) => `${label.padEnd(13)} ${value}`).join('\n');
}

/** Without the hashes of its secrets: nothing outside needs them. */
const clientValue = (client: Client) => ({
  id: client.id,
  client_id: client.id,
  kind: client.kind,
  name: client.name,
  owner_account_id: client.ownerAccountId ?? null,
  owner_name: client.ownerName ?? null,
  redirect_uris: client.redirectUris,
  native: client.isNative,
  suspended: client.isSuspended,
  created_at: client.createdAt,
  secrets: client.secrets.map(({ id, lastFour, createdAt, lastUsedAt }) => ({
    id,
    last_four: lastFour,
    created_at: createdAt,
    last_used_at: lastUsedAt ?? null,
  })),
});
