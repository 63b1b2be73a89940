/** Finds the account or the client whose name is an argument of a command. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import type { Registries } from '../registries.ts';
import type { Operator, Report } from './operator.ts';

/** @param name the email address or the account ID @throws Refusal `account_unknown` */
export async function accountNamed({ accounts }: Registries, name: string): Promise<Account> {
  const account = (await accounts.findByEmail(name)) ?? (await accounts.find(name));
  if (account) return account;
  throw new Refusal('account_unknown', `There is no account ${name}.`, 'See `accounts list`.');
}

/** @throws Refusal `client_unknown` */
export async function clientNamed({ clients }: Registries, id: string): Promise<Client> {
  const client = await clients.find(id);
  if (client) return client;
  throw new Refusal('client_unknown', `There is no client ${id}.`, 'See `clients list`.');
}

const about =
  <One>(argument: string, description: string, named: (registries: Registries, name: string) => Promise<One>) =>
  <Options extends object>(
    command: Command,
    { run }: Operator,
    work: (one: One, registries: Registries, options: Options) => Promise<Report>,
  ): Command =>
    command
      .argument(argument, description)
      .action((name: string, options: Options) =>
        run(async (registries) => work(await named(registries, name), registries, options)),
      );

export const aboutAccount = about('<account>', 'email address or account ID', accountNamed);
export const aboutClient = about('<client>', 'client ID', clientNamed);
