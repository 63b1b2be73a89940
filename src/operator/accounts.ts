/** `operator accounts`: the people who may sign in. */
import { type Command, Option } from 'commander';
import type { Account } from '../accounts/account.ts';
import { Refusal } from '../refusal.ts';
import { accountNamed, oneName } from './names.ts';
import type { Operator } from './operator.ts';
import { type PasswordOptions, passwordFrom } from './password-source.ts';
import { type Report, table } from './report.ts';

export function addAccountCommands(program: Command, operator: Operator): void {
  const { run } = operator;
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
    .addOption(
      new Option(
        '--invite',
        'print a link with which the person sets the password, and mail it where mail is configured',
      ).conflicts(['passwordFile', 'generatePassword']),
    )
    .action(async (options: NewAccountOptions) => {
      const { email, name, invite = false } = options;
      const given = invite ? undefined : await passwordFrom(options, operator);
      await run(async ({ accounts, invitations, recordChange }) => {
        const account = await accounts.add(
          { email, name, password: given?.password },
          (tx, { id }) => recordChange('account_added', { accountId: id })(tx),
        );
        const report = accountReport('Added', account);
        if (invite) return joined(report, await invitations.invite(account));
        if (!given?.isGenerated) return report;
        const { password } = given;
        const text = `Password, shown only this once: ${password}`;
        return joined(report, { value: { password }, text });
      });
    });

  named(accounts.command('invite'))
    .description('make another link with which the person sets the password')
    .action((argument: string | undefined, { account }: { account?: string }) => {
      const name = oneName(argument, account, 'an account');
      return run(async (registries) => {
        const invited = await accountNamed(registries, name);
        if (invited.isSuspended) throw suspended(invited);
        const report = accountReport('Invited', invited);
        return joined(report, await registries.invitations.invite(invited));
      });
    });

  accounts
    .command('list')
    .description('every account, oldest first')
    .action(() =>
      run(async (registries) => {
        const all = await registries.accounts.list();
        const rows = all.map((one) => [...[one.id, one.email, one.name], stateOf(one)]);
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
    named(accounts.command(change))
      .description(description)
      .action((argument: string | undefined, { account }: { account?: string }) => {
        const name = oneName(argument, account, 'an account');
        return run(async (registries) => {
          const { id } = await accountNamed(registries, name);
          const record = registries.recordChange(ACTIONS[change], { accountId: id });
          return accountReport(done, await registries.accounts[change](id, record));
        });
      });
  }
}

interface NewAccountOptions extends PasswordOptions {
  readonly email: string;
  readonly name: string;
  readonly invite?: true;
}

const ACTIONS = { suspend: 'account_suspended', resume: 'account_resumed' } as const;

const named = (command: Command): Command =>
  command
    .argument('[account]', 'email address or account ID')
    .option('--email, --account <account>', 'the same, as an option');

/** One report of two things that were done. */
const joined = (
  first: Report & { readonly value: object },
  second: Report & { readonly value: object },
): Report => ({
  value: { ...first.value, ...second.value },
  text: `${first.text}\n${second.text}`,
});

function suspended({ email }: Account): Refusal {
  const remedy = 'Resume the account first.';
  return new Refusal('account_suspended', `The account ${email} is suspended.`, remedy);
}

function accountReport(done: string, account: Account): Report & { readonly value: object } {
  const { id, email, name } = account;
  return { value: accountValue(account), text: `${done} account ${id}: ${name} <${email}>.` };
}

function stateOf({ isSuspended, isEmailTaken, hasPassword }: Account): string {
  if (isSuspended) return 'suspended';
  if (isEmailTaken) return 'address taken';
  return hasPassword ? 'active' : 'no password yet';
}

const accountValue = ({
  id,
  email,
  name,
  isSuspended,
  isEmailTaken,
  hasPassword,
  createdAt,
  externalId,
}: Account) => ({
  id,
  account_id: id,
  email,
  name,
  external_id: externalId ?? null,
  suspended: isSuspended,
  email_taken: isEmailTaken,
  has_password: hasPassword,
  created_at: createdAt,
});
