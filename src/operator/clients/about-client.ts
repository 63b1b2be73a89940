/** A command about one client, which is there when its work begins. */
import type { Command } from 'commander';
import type { Client } from '../../clients/client.ts';
import { clientNamed, oneName } from '../program/names.ts';
import type { Operator } from '../program/operator.ts';
import type { Report } from '../program/report.ts';
import type { Registries } from '../registries.ts';
import { clientText, clientValue } from './client-report.ts';

/** Makes it one. */
export function aboutOne<Options extends object>(
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
export const report = (client: Client, done?: string): Report => ({
  value: clientValue(client),
  text: [clientText(client), done].filter(Boolean).join('\n'),
});
