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
import { table } from './report.ts';

const KINDS: readonly ClientKind[] = ['confidential', 'public', 'machine', 'resource-server'];

interface NewClientOptions {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUri: readonly string[];
  readonly native: boolean;
  readonly owner?: string;
}

export function addClientCommands(program: Command, operator: Operator): void {
  const { run } = operator;
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
        const { client, secret } = await registries.clients.add(
          { ...{ kind, name, redirectUris, isNative: native }, ownerAccountId: account?.id },
          (tx, id) => {
            const about = { id, name: name.trim(), ownerAccountId: account?.id };
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
    named(clients.command(change))
      .description(description)
      .action((argument: string | undefined, options: { client?: string }) => {
        const id = oneName(argument, options.client, 'a client');
        return run(async (registries) => {
          const found = await clientNamed(registries, id);
          const client =
            change === 'show'
              ? found
              : await registries.clients[change](id, recordOf(registries, ACTIONS[change], found));
          const text = [clientText(client), done].filter(Boolean).join('\n');
          return { value: clientValue(client), text };
        });
      });
  }

  named(clients.command('transfer'))
    .description('give a client to another owner')
    .addOption(new Option('--owner <account>', 'the new owner: email address or account ID'))
    .addOption(new Option('--to-operator', 'nobody: the operator provides it').conflicts('owner'))
    .action((argument: string | undefined, { client, owner, toOperator }: TransferOptions) => {
      const id = oneName(argument, client, 'a client');
      if (owner === undefined && !toOperator) throw new WrongUsage('name the new owner');
      return run(async (registries) => {
        const found = await clientNamed(registries, id);
        const account = owner === undefined ? undefined : await accountNamed(registries, owner);
        // In the log of both, or once where nobody owned it and nobody will.
        const logs = new Set([found.ownerAccountId, account?.id]);
        if (logs.size > 1) logs.delete(undefined);
        const moved = await registries.clients.transfer(id, account?.id, async (tx) => {
          for (const ownerAccountId of logs) {
            const about = { id, name: found.name, ownerAccountId };
            await recordOf(registries, 'client_transferred', about)(tx);
          }
        });
        return { value: clientValue(moved), text: `${clientText(moved)}\nTransferred.` };
      });
    });

  named(clients.command('rotate-secret'))
    .description('add a second secret beside the one in use, and show it once')
    .action((argument: string | undefined, options: { client?: string }) => {
      const id = oneName(argument, options.client, 'a client');
      return run(async (registries) => {
        const found = await clientNamed(registries, id);
        const { client, secret } = await registries.clients.addSecret(id, (tx, { lastFour }) =>
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
    });

  askedFirst(named(clients.command('remove-secret')))
    .description('refuse a secret from now on; the last one stays')
    .requiredOption('--secret <secret>', 'its ID, or its last four characters')
    .action((argument: string | undefined, options: RemoveSecretOptions) => {
      const id = oneName(argument, options.client, 'a client');
      return run(async (registries) => {
        const found = await clientNamed(registries, id);
        const [secret, ...others] = found.secrets.filter((live) =>
          [live.id, live.lastFour].includes(options.secret),
        );
        const secretId = secret && others.length === 0 ? secret.id : options.secret;
        // What the registry refuses is not asked about.
        if (secret && found.secrets.length > 1) {
          const what = `Removes the secret …${secret.lastFour} of ${found.name}.`;
          await confirmed(what, options, operator);
        }
        const client = await registries.clients.removeSecret(id, secretId, (tx, { lastFour }) =>
          recordOf(registries, 'client_secret_removed', found, { last_four: lastFour })(tx),
        );
        return { value: clientValue(client), text: `${clientText(client)}\nRemoved.` };
      });
    });

  askedFirst(named(clients.command('delete')))
    .description('end a client and everything issued to it, for good')
    .action((argument: string | undefined, options: DeleteOptions) => {
      const id = oneName(argument, options.client, 'a client');
      return run(async (registries) => {
        const client = await clientNamed(registries, id);
        const connected = await registries.connections.countOf(id);
        const what = `Deletes ${client.name} and disconnects the ${connected} people who use it.`;
        await confirmed(what, options, operator);
        const people = await registries.clients.remove(id, (tx, connected) =>
          recordOf(registries, 'client_deleted', client, { people: connected })(tx),
        );
        return {
          value: { ...clientValue(client), deleted: true, disconnected_people: people },
          text: `Deleted client ${id}: ${client.name}. Disconnected people: ${people}.`,
        };
      });
    });
}

interface DeleteOptions extends ConfirmationOptions {
  readonly client?: string;
}

interface RemoveSecretOptions extends DeleteOptions {
  readonly secret: string;
}

interface TransferOptions {
  readonly client?: string;
  readonly owner?: string;
  readonly toOperator?: true;
}

const named = (command: Command): Command =>
  command.argument('[client]', 'client ID').option('--client <id>', 'the same, as an option');

const ACTIONS = { suspend: 'client_suspended', resume: 'client_resumed' } as const;

/** In the log of the owner, where there is one. */
const recordOf = (
  { recordChange }: Registries,
  action: Action,
  {
    id,
    name,
    ownerAccountId,
  }: Pick<Client, 'id' | 'name'> & { ownerAccountId?: string | undefined },
  details: Readonly<Record<string, string | number>> = {},
) =>
  recordChange(action, {
    accountId: ownerAccountId,
    details: { client_id: id, client_name: name, ...details },
  });

const another = (uri: string, before: readonly string[]): string[] => [...before, uri];
