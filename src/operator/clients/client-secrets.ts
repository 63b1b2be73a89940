/** `operator clients rotate-secret` and `remove-secret`: one secret after the other, with an overlap. */
import type { Command } from 'commander';
import { askedFirst, type ConfirmationOptions, confirmed } from '../command/confirmation.ts';
import { aboutClient } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import { clientRecord } from '../registries.ts';
import { clientValue, report } from './client-report.ts';

export function addClientSecretCommands(clients: Command, operator: Operator): void {
  addRotateSecret(clients, operator);
  addRemoveSecret(clients, operator);
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
  const remove = askedFirst(clients.command('remove-secret'))
    .description('refuse a secret from now on; the last one stays')
    .requiredOption('--secret <secret>', 'its ID, or its last four characters');
  aboutClient(remove, operator, async (client, registries, options: RemoveSecretOptions) => {
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
      clientRecord(registries, 'client_secret_removed', client, { last_four: lastFour })(tx),
    );
    return report(left, 'Removed.');
  });
}

interface RemoveSecretOptions extends ConfirmationOptions {
  readonly secret: string;
}
