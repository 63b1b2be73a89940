/** `operator sessions`: where somebody is signed in on our pages. */
import { type Command, Option } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { systemClock } from '../../clock.ts';
import { isAlive } from '../../provider/browser-sessions.ts';
import { endOfSession, type SessionTimes } from '../../provider/session-ages.ts';
import { sha256 } from '../../random-id.ts';
import { cutPage } from '../../storage/pages.ts';
import { askedFirst, type ConfirmationOptions, confirmed } from '../program/confirmation.ts';
import { WrongUsage } from '../program/failure.ts';
import { type ListOptions, listed, listReport, pageAsked } from '../program/lists.ts';
import { accountNamed } from '../program/names.ts';
import type { Operator } from '../program/operator.ts';
import type { Registries } from '../registries.ts';

interface Whose {
  readonly account: string;
}

/** Sign-ins of one person that are looked at: many more than there are browsers. */
const MOST = 1_000;
/** Milliseconds between a sign-in and its record. */
const NEAR = 5_000;

export function addSessionCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const sessions = program.command('sessions').description('where people are signed in');

  listed(sessions.command('list'))
    .description('the browser sessions of a person that are good now, the latest sign-in first')
    .requiredOption('--account <account>', 'the person: email address or account ID')
    .action(({ account, ...options }: Whose & ListOptions) =>
      run(async (registries) => {
        const alive = await sessionsOf(registries, await accountNamed(registries, account));
        return listReport(cutPage(alive, cellsOf, pageAsked(options, operator)), {
          heading: ['ID', 'SIGNED IN', 'ENDS', 'FROM', 'BROWSER'],
          row: cellsOf,
          value: ({ id, signedInAt, endsAt, origin }) => ({
            id,
            signed_in_at: signedInAt,
            ends_at: endsAt,
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

type ListedSession = Awaited<ReturnType<typeof sessionsOf>>[number];

const cellsOf = ({ id, signedInAt, endsAt, origin }: ListedSession): string[] => [
  id,
  signedInAt.toISOString(),
  endsAt.toISOString(),
  origin?.address ?? '',
  origin?.browser ?? '',
];

/** What the token store keeps of a session, as far as it is looked at. */
interface KeptSession extends SessionTimes {
  readonly uid: string;
  readonly loginTs: number;
  /** The generation of the account's sessions. */
  readonly acr: string;
}

async function sessionsOf({ tokenStore, audit, settings }: Registries, account: Account) {
  const kept = await (await tokenStore()).sessionsOf<KeptSession>(account.id);
  const signIns = await audit.find({ accountId: account.id, action: 'signed_in', limit: MOST });
  return kept
    .map(({ data, ...record }) => ({
      data,
      endsAt: new Date(endOfSession({ data, ...record }, settings.sessions) * 1_000),
    }))
    .filter(({ data: { acr, uid } }) => isAlive(account, { generation: Number(acr), uid }))
    .filter(({ endsAt }) => endsAt.getTime() > systemClock())
    .map(({ data: { uid, loginTs }, endsAt }) => {
      const signedInAt = new Date(loginTs * 1_000);
      // Recorded beside it. A renewed session is as old as its sign-in.
      const signIn = signIns.find(({ at }) => Math.abs(Number(at) - Number(signedInAt)) < NEAR);
      // Names it and is no key to it.
      const id = sha256(uid).slice(0, 12);
      return { id, signedInAt, endsAt, origin: signIn?.origin };
    })
    .sort((a, b) => Number(b.signedInAt) - Number(a.signedInAt) || (a.id < b.id ? -1 : 1));
}
