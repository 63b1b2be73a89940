/** A command about one account, which is there when its work begins. */
import type { Command } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { accountNamed, oneName } from '../program/names.ts';
import type { Operator } from '../program/operator.ts';
import type { Report } from '../program/report.ts';
import type { Registries } from '../registries.ts';

/** Makes it one. */
export function aboutOne<Options extends object>(
  command: Command,
  { run }: Operator,
  work: (account: Account, registries: Registries, options: Options) => Promise<Report>,
): Command {
  return named(command).action(
    (argument: string | undefined, options: Options & { readonly account?: string }) => {
      const name = oneName(argument, options.account, 'an account');
      return run(async (registries) =>
        work(await accountNamed(registries, name), registries, options),
      );
    },
  );
}

export const named = (command: Command): Command =>
  command
    .argument('[account]', 'email address or account ID')
    .option('--email, --account <account>', 'the same, as an option');
