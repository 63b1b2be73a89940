/** How a command line names the account or client it is about. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Client } from '../../clients/client.ts';
import type { Registries } from '../registries.ts';
import { WrongUsage } from './given.ts';
import type { Operator, Report } from './operator.ts';

/** The account of an email address or an account ID. @throws Refusal `account_unknown` */
export async function accountNamed({ accounts }: Registries, name: string): Promise<Account> {
  const account = (await accounts.findByEmail(name)) ?? (await accounts.find(name));
  if (account) return account;
  throw new Refusal('account_unknown', `There is no account ${name}.`, 'See `accounts list`.');
}

/** The client of a client ID. @throws Refusal `client_unknown` */
export async function clientNamed({ clients }: Registries, id: string): Promise<Client> {
  const client = await clients.find(id);
  if (client) return client;
  throw new Refusal('client_unknown', `There is no client ${id}.`, 'See `clients list`.');
}

/** What is done with one thing that is there when it begins. */
type Work<One, Options> = (one: One, registries: Registries, options: Options) => Promise<Report>;

/** Makes the command one about an account. */
export const aboutAccount = <Options extends object>(
  command: Command,
  operator: Operator,
  work: Work<Account, Options>,
): Command =>
  command
    .argument('[account]', 'email address or account ID')
    .option('--email, --account <account>', 'the same, as an option')
    .action((argument: string | undefined, options: Options & { readonly account?: string }) => {
      const name = once(argument, options.account, 'an account');
      return operator.run(async (registries) =>
        work(await accountNamed(registries, name), registries, options),
      );
    });

/** Makes the command one about a client. */
export const aboutClient = <Options extends object>(
  command: Command,
  operator: Operator,
  work: Work<Client, Options>,
): Command =>
  command
    .argument('[client]', 'client ID')
    .option('--client <id>', 'the same, as an option')
    .action((argument: string | undefined, options: Options & { readonly client?: string }) => {
      const id = once(argument, options.client, 'a client');
      return operator.run(async (registries) =>
        work(await clientNamed(registries, id), registries, options),
      );
    });

/** @throws WrongUsage for neither or both. */
function once(argument: string | undefined, option: string | undefined, what: string): string {
  const name = argument ?? option;
  if (name === undefined) throw new WrongUsage(`name ${what}`);
  if (argument !== undefined && option !== undefined) throw new WrongUsage(`name ${what} once`);
  return name;
}
