/** Finds the account or client that a command line names. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import type { Registries } from '../registries.ts';
import type { Operator, Report } from './operator.ts';

/** @param name an email address or an account ID @throws Refusal `account_unknown` */
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

/** The work of a command on an existing account or client. */
type Work<One, Options> = (one: One, registries: Registries, options: Options) => Promise<Report>;

/** Makes the command take an account as its argument. */
export const aboutAccount = <Options extends object>(
  command: Command,
  { run }: Operator,
  work: Work<Account, Options>,
): Command =>
  command
    .argument('<account>', 'email address or account ID')
    .action((name: string, options: Options) =>
      run(async (registries) => work(await accountNamed(registries, name), registries, options)),
    );

/** Makes the command take a client as its argument. */
export const aboutClient = <Options extends object>(
  command: Command,
  { run }: Operator,
  work: Work<Client, Options>,
): Command =>
  command
    .argument('<client>', 'client ID')
    .action((id: string, options: Options) =>
      run(async (registries) => work(await clientNamed(registries, id), registries, options)),
    );
