/** `operator audit`: who changed what, who signed in, what was revoked, and from where. */
import { type Command, Option } from 'commander';
import { isAccountId } from '../accounts/account.ts';
import type { ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, type Action, actionInEnglish } from '../accounts/activity/activity-words.ts';
import { type AuditRecord, auditEntry } from '../accounts/activity/audit.ts';
import { parseTime, wholeNumber } from './command/arguments.ts';
import { accountNamed } from './command/names.ts';
import type { Operator } from './command/operator.ts';
import { printable, table, toMoment } from './command/report.ts';
import type { Registries } from './registries.ts';

interface AuditOptions {
  readonly account?: string;
  readonly client?: string;
  readonly action?: Action;
  readonly actor?: ActivityRecord['actor'];
  readonly request?: string;
  readonly import?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly before?: number;
  readonly limit: number;
}

const ACTORS: readonly ActivityRecord['actor'][] = ['person', 'operator', 'client', 'service', 'organization'];
const MAX = 10_000;

export function addAuditCommand(program: Command, { run }: Operator): void {
  program
    .command('audit')
    .description(
      'list who did what, newest first: sign-ins, connections, and every change of accounts, clients and access',
    )
    .option('--account <account>', 'only this person: email address, or account ID, also of a deleted account')
    .option('--client <id>', 'only this client, also a deleted one')
    .addOption(new Option('--action <action>', 'only this kind of action').choices([...ACTIONS].sort()))
    .addOption(new Option('--actor <actor>', 'only actions of these actors').choices(ACTORS))
    .option('--request <id>', 'only this request: the ID req_… in answers and in the log')
    .option('--import <id>', 'only this import: the ID imp_… that the import printed')
    .option('--since <time>', 'only from this time on: 7d, 12h, 30m, or 2026-01-31T08:00Z', parseTime)
    .option('--until <time>', 'only before this time, in the same form', parseTime)
    .option('--limit <number>', `maximum number of entries, up to ${MAX}`, wholeNumber(MAX), 100)
    .option('--before <id>', 'only entries older than this one: the next page', wholeNumber(Number.MAX_SAFE_INTEGER))
    .action((options: AuditOptions) =>
      run(async (registries) => {
        const { account, client: clientId, request: requestId, import: importId, ...question } = options;
        const accountId = account && (await accountIdNamed(registries, account));
        const found = await registries.audit.find({ ...question, accountId, clientId, requestId, importId });
        const value = found.map((one) => ({ ...auditEntry(one), email: one.email ?? null }));
        const last = found.length === options.limit ? found.at(-1) : undefined;
        const more = last ? `\n\nThere may be older entries: add --before ${last.id}` : '';
        return { value, text: table(HEADING, found.map(rowOf), 'No entry matches these options.') + more };
      }),
    );
}

/** Accepts every account ID without looking it up, because the log of a deleted account still exists. */
async function accountIdNamed(registries: Registries, name: string): Promise<string> {
  return isAccountId(name) ? name : (await accountNamed(registries, name)).id;
}

const HEADING = ['TIME', 'WHO', 'WHAT', 'ABOUT', 'OF', 'FROM', 'REASON', 'REQUEST'];

function rowOf(record: AuditRecord): string[] {
  const { at, actor, by, email, accountId, origin, requestId } = record;
  const { what, about, note } = actionInEnglish(record);
  const details = [about, note && `(${note})`].filter(Boolean).join(' ');
  const person = email ?? accountId ?? '';
  // If the person did not act, show the person in the column OF instead of the column WHO.
  const [who, of] =
    actor === 'person' ? [person, ''] : [`(${[actor, by?.operator].filter(Boolean).join(' ')})`, person];
  return [toMoment(at), who, what, details, of, origin?.address ?? '', by?.reason ?? '', requestId ?? ''];
}

export const auditLine = (record: AuditRecord): string => printable(rowOf(record).filter(Boolean).join('  '));
