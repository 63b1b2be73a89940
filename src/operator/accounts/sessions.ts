/** `operator sessions`: lists and ends the browser sessions of people. */
import { type Command, Option } from 'commander';
import type { Account } from '../../accounts/account.ts';
import { describeBrowser } from '../../accounts/browser-names.ts';
import { type StartedSession, sessionId } from '../../accounts/session-list.ts';
import { epochSeconds, systemClock } from '../../base/clock.ts';
import { type ActiveSession, findActiveSessions } from '../../provider/session-ages.ts';
import { WrongUsage } from '../command/arguments.ts';
import { addYesOption } from '../command/confirmation.ts';
import { accountNamed } from '../command/names.ts';
import type { Operator, Report } from '../command/operator.ts';
import { itemsReport, type ListForm } from '../command/report.ts';
import type { Registries } from '../registries.ts';

const MAX_LISTED = 1_000;

export function addSessionCommands(program: Command, operator: Operator): void {
  const { run } = operator;
  const sessions = program.command('sessions').description('browser sessions of people');

  sessions
    .command('list')
    .description('list the active browser sessions of a person, the latest sign-in first')
    .requiredOption('--account <account>', 'the person: email address or account ID')
    .action(({ account }: { readonly account: string }) =>
      run(async (registries) =>
        itemsReport(LIST, await sessionsOf(registries, await accountNamed(registries, account))),
      ),
    );

  addYesOption(sessions.command('end'))
    .description('end all browser sessions of a person, or of the deployment; tokens stay valid')
    .addOption(new Option('--account <account>', 'the person: email address or account ID').conflicts('all'))
    .option('--all', 'all sessions of everyone: after an older database was restored')
    .action(({ account, all }: { readonly account?: string; readonly all?: true }) => {
      if (account !== undefined) return run((registries) => endThoseOf(registries, account, operator));
      if (all) return run((registries) => endAll(registries, operator));
      throw new WrongUsage('choose what to end: --account or --all');
    });
}

async function endThoseOf(registries: Registries, account: string, { confirm }: Operator): Promise<Report> {
  const { accounts, recordChange } = registries;
  const { id, email } = await accountNamed(registries, account);
  await confirm(`Ends every browser session of ${email}.`);
  await accounts.endSessions(id, recordChange('signed_out_everywhere', { accountId: id }));
  return { value: { account_id: id, email, browser_sessions_ended: true }, text: `Signed ${email} out everywhere.` };
}

async function endAll({ accounts, recordChange }: Registries, { confirm }: Operator): Promise<Report> {
  await confirm('Ends every browser session of all people.');
  await accounts.endEverySession(recordChange('signed_out_everywhere', {}));
  return { value: { browser_sessions_ended: true }, text: 'Signed all people out everywhere.' };
}

interface ListedSession extends Pick<StartedSession, 'origin'>, ActiveSession {
  readonly id: string;
}

const LIST: ListForm<ListedSession> = {
  heading: ['ID', 'SIGNED IN', 'LAST SEEN', 'ENDS', 'FROM', 'BROWSER'],
  row: ({ id, signedInAt, lastSeen, endsAt, origin }) => [
    id,
    signedInAt.toISOString(),
    lastSeen.toISOString(),
    endsAt.toISOString(),
    origin.address,
    describeBrowser(origin.browser),
  ],
  value: ({ id, signedInAt, lastSeen, endsAt, origin }) => ({
    id,
    signed_in_at: signedInAt,
    last_seen_at: lastSeen,
    ends_at: endsAt,
    address: origin.address,
    browser: origin.browser,
  }),
  nothing: 'The person has no active session.',
};

async function sessionsOf(registries: Registries, account: Account): Promise<readonly ListedSession[]> {
  const sessions = await registries.sessionList.of(account, MAX_LISTED);
  const active = await activeAmong(registries, sessions);
  return sessions.flatMap(({ uid, origin }) => {
    const found = active.get(uid);
    return found ? [{ id: sessionId({ uid }), origin, ...found }] : [];
  });
}

/** Returns, by `uid`, the sessions that the token store still has. */
export const activeAmong = async (
  { tokenStore, settings }: Registries,
  sessions: readonly Pick<StartedSession, 'uid'>[],
): Promise<ReadonlyMap<string, ActiveSession>> =>
  findActiveSessions(
    await tokenStore(),
    sessions.map(({ uid }) => uid),
    settings.sessions,
    epochSeconds(systemClock),
  );
