/** `operator problems`: the problems of partners and people in the last seven days. */
import { type Command, Option } from 'commander';
import { actionInEnglish } from '../accounts/activity/activity-words.ts';
import type { RefusedSignIns } from '../accounts/activity/audit.ts';
import { systemClock } from '../base/clock.ts';
import type { ClientProblemGroup } from '../clients/client-requests.ts';
import { cutPage } from '../storage/pages.ts';
import { accountNamed, clientNamed } from './command/names.ts';
import type { Operator } from './command/operator.ts';
import { addList, type ListForm } from './command/report.ts';

type Only = { readonly account?: string; readonly client?: string };

/** How long the problems of clients are stored. */
const WEEK_MS = 7 * 86_400_000;

export function addProblemCommands(program: Command, operator: Operator): void {
  const problems = program.command('problems').description('recent problems of partners and people');

  addList(problems, operator, FORM, async (registries, page, { account, client }: Only) => {
    const clientId = client && (await clientNamed(registries, client)).id;
    const accountId = account && (await accountNamed(registries, account)).id;
    const since = new Date(systemClock() - WEEK_MS);
    const [ofClients, ofPeople] = await Promise.all([
      accountId ? [] : registries.clientRequests.groups(clientId),
      clientId ? [] : registries.audit.refusedSignIns(since, accountId),
    ]);
    const all = [...ofClients.map(fromClient), ...ofPeople.map(fromPerson)];
    all.sort((a, b) => Number(b.last) - Number(a.last) || (a.id < b.id ? -1 : 1));
    return cutPage(all, FORM.row, page);
  })
    .description(
      'list the refused requests of clients and refused sign-ins of the last 7 days, the ' +
        'latest first; equal problems are grouped into one line, which counts the last 5 of a client',
    )
    .addOption(new Option('--client <id>', 'only problems of this client').conflicts('account'))
    .addOption(new Option('--account <account>', 'only problems of this person'))
    .addHelpText('after', '\nRequests without a known client or person, and failed mails, are only in the log.');
}

type RecentProblem = ReturnType<typeof fromClient | typeof fromPerson>;

const fromClient = (group: ClientProblemGroup) => ({
  id: `client-${group.id}`,
  last: group.at,
  first: group.first,
  count: group.count,
  who: `${group.clientName} (${group.clientId})`,
  what: `${group.step} request refused: ${group.error}${group.isMended ? ' (mended)' : ''}`,
  about: {
    client_id: group.clientId,
    client_name: group.clientName,
    step: group.step,
    error: group.error,
    redirect_uri: group.redirectUri,
    scope: group.scope,
    auth_method: group.authMethod,
    mended: group.isMended,
  },
  cause: group.cause,
  requestId: group.requestId,
});

function fromPerson(refused: RefusedSignIns) {
  const { what, about, note } = actionInEnglish(refused);
  return {
    id: `person-${refused.id}`,
    last: refused.last,
    first: refused.first,
    count: refused.count,
    who: refused.email,
    what,
    about: { account_id: refused.accountId, email: refused.email, action: refused.action },
    cause: [about, note].filter(Boolean).join(': '),
    requestId: null,
  };
}

const FORM: ListForm<RecentProblem> = {
  heading: ['ID', 'LAST', 'TIMES', 'WHO', 'WHAT', 'CAUSE', 'REQUEST'],
  row: ({ id, last, count, who, what, cause, requestId }) => [
    id,
    last.toISOString(),
    String(count),
    who,
    what,
    cause,
    requestId ?? '',
  ],
  value: ({ last, first, about, requestId, ...shown }) => {
    return { ...shown, last_at: last, first_at: first, ...about, request_id: requestId };
  },
  nothing: 'No client and no person had a problem in the last 7 days.',
};
