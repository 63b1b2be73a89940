/** `operator sessions`: where somebody is signed in on our pages. */
import { type Command, Option } from 'commander';
import { systemClock } from '../clock.ts';
import { askedFirst, type ConfirmationOptions, confirmed } from './confirmation.ts';
import { WrongUsage } from './failure.ts';
import { type ListOptions, listed, listReport } from './lists.ts';
import { accountNamed } from './names.ts';
import type { Operator } from './operator.ts';

interface Whose {
  readonly account: string;
}

/** Sign-ins of one person that are looked at: many more than there are browsers. */
const MOST = 1_000;

export function addSessionCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const sessions = program.command('sessions').description('where people are signed in');

  listed(sessions.command('list'))
    .description(
      'the sign-ins of a person from which a session may still be good, the latest first',
    )
    .requiredOption('--account <account>', 'the person: email address or account ID')
    .action(({ account, ...options }: Whose & ListOptions) =>
      run(async (registries) => {
        const { id: accountId } = await accountNamed(registries, account);
        const { absoluteSeconds } = registries.settings.sessions;
        const since = new Date(systemClock() - absoluteSeconds * 1000);
        const find = (action: 'signed_in' | 'signed_out_everywhere' | 'password_changed') =>
          registries.audit.find({ accountId, action, since, limit: MOST });
        const [signIns, ...ends] = await Promise.all([
          find('signed_in'),
          find('signed_out_everywhere'),
          find('password_changed'),
        ]);
        const [end] = ends.flat().toSorted((a, b) => b.id - a.id);
        const good = signIns.filter(({ id }) => id > (end?.id ?? 0));
        // The browser in which a person ends all others goes on with a session of its own.
        const kept = end?.actor === 'person' ? [end] : [];
        return listReport([...good, ...kept], options, {
          heading: ['ID', 'SIGNED IN', 'FROM', 'BROWSER'],
          row: ({ id, at, origin }) => [
            `${id}`,
            at.toISOString(),
            origin?.address ?? '',
            origin?.browser ?? '',
          ],
          value: ({ id, at, origin }) => ({
            id,
            signed_in_at: at,
            address: origin?.address ?? null,
            browser: origin?.browser ?? null,
          }),
          nothing: 'They are signed in nowhere.',
        });
      }),
    );

  askedFirst(sessions.command('end'))
    .description('sign a person out everywhere, or everybody; tokens of clients go on')
    .addOption(
      new Option('--account <account>', 'the person: email address or account ID').conflicts('all'),
    )
    .option('--all', 'everybody: after an older store was restored')
    .action(
      ({ account, all, ...options }: Partial<Whose> & { all?: true } & ConfirmationOptions) => {
        if (account === undefined && !all) throw new WrongUsage('say whose: --account or --all');
        return run(async (registries) => {
          if (account === undefined) {
            await confirmed('Ends every browser session of everybody.', options, operator);
            const record = registries.recordChange('signed_out_everywhere', {});
            const count = await registries.accounts.endEverySession(record);
            return {
              value: { accounts: count, browser_sessions_ended: true },
              text: `Signed all ${count} people out everywhere.`,
            };
          }
          const { id, email } = await accountNamed(registries, account);
          await confirmed(`Ends every browser session of ${email}.`, options, operator);
          const record = registries.recordChange('signed_out_everywhere', { accountId: id });
          await registries.accounts.endSessions(id, record);
          return {
            value: { account_id: id, email, browser_sessions_ended: true },
            text: `Signed ${email} out everywhere.`,
          };
        });
      },
    );
}
