/** `operator accounts`: the people who may sign in. */
import { type Command, Option } from 'commander';
import type { Account } from '../accounts/account.ts';
import { accountNamed, oneName } from './names.ts';
import type { Operator } from './operator.ts';
import { type PasswordOptions, passwordFrom } from './password-source.ts';
import { type Report, table } from './report.ts';

export function addAccountCommands(program: Command, { run }: Operator): void {
  const accounts = program.command('accounts').description('people who may sign in');

  accounts
    .command('add')
    .description('add an account; its password comes from standard input, or as below')
    .requiredOption('--email <email>', 'the address to sign in with')
    .requiredOption('--name <name>', 'the name that pages show')
    .option('--password-file <file>', 'read the password from a file')
    .addOption(
      new Option('--generate-password', 'make a password and show it once').conflicts(
        'passwordFile',
      ),
    )
    .action(async (options: { email: string; name: string } & PasswordOptions) => {
      const { password, isGenerated } = await passwordFrom(options);
      const { email, name } = options;
      await run(async (registries) => {
        const account = await registries.accounts.add({ email, name, password });
        const report = accountReport('Added', account);
        if (!isGenerated) return report;
        return {
          value: { ...accountValue(account), password },
          text: `${report.text}\nPassword, shown only this once: ${password}`,
        };
      });
    });

  accounts
    .command('list')
    .description('every account, oldest first')
    .action(() =>
      run(async (registries) => {
        const all = await registries.accounts.list();
        const rows = all.map(({ id, email, name, isSuspended, hasPassword }) => [
          ...[id, email, name],
          isSuspended ? 'suspended' : hasPassword ? 'active' : 'no password yet',
        ]);
        return {
          value: all.map(accountValue),
          text: table(['ID', 'EMAIL', 'NAME', 'STATE'], rows, 'There are no accounts.'),
        };
      }),
    );

  const changes = [
    ['suspend', 'Suspended', 'refuse the person and every client acting for them, from now on'],
    ['resume', 'Resumed', 'end a suspension'],
  ] as const;
  for (const [change, done, description] of changes) {
    accounts
      .command(change)
      .description(description)
      .argument('[account]', 'email address or account ID')
      .option('--email, --account <account>', 'the same, as an option')
      .action((argument: string | undefined, { account }: { account?: string }) => {
        const named = oneName(argument, account, 'an account');
        return run(async (registries) => {
          const { id } = await accountNamed(registries, named);
          return accountReport(done, await registries.accounts[change](id));
        });
      });
  }
}

function accountReport(done: string, account: Account): Report {
  const { id, email, name } = account;
  return { value: accountValue(account), text: `${done} account ${id}: ${name} <${email}>.` };
}

const accountValue = ({ id, email, name, isSuspended, hasPassword, createdAt }: Account) => ({
  id,
  account_id: id,
  email,
  name,
  suspended: isSuspended,
  has_password: hasPassword,
  created_at: createdAt,
});
