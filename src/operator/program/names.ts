/** How a command line names the account or client it is about. */
import type { Account } from '../../accounts/account.ts';
import type { Client } from '../../clients/client.ts';
import { Refusal } from '../../refusal.ts';
import type { Registries } from '../registries.ts';
import { WrongUsage } from './failure.ts';

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

/** What was given as the argument or as the option. @throws WrongUsage for neither or both. */
export function oneName(
  argument: string | undefined,
  option: string | undefined,
  what: string,
): string {
  const name = argument ?? option;
  if (name === undefined) throw new WrongUsage(`name ${what}`);
  if (argument !== undefined && option !== undefined) throw new WrongUsage(`name ${what} once`);
  return name;
}
