/** `operator audit`: who changed what, who signed in, what was revoked, and from where. */
import { type Command, Option } from 'commander';
import { isAccountId } from '../accounts/account.ts';
import type { ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, type Action, describeAction } from '../accounts/activity/activity-words.ts';
import type { AuditRecord } from '../accounts/activity/audit.ts';
import { parseTime, wholeNumber } from './command/arguments.ts';
import { accountNamed } from './command/names.ts';
import type { Operator } from './command/operator.ts';
import { table } from './command/report.ts';
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

const ACTORS: readonly ActivityRecord['actor'][] = [
  'person',
  'operator',
  'client',
  'service',
  'organization',
];
const MAX = 10_000;

export function addAuditCommand(program: Command, { run }: Operator): void {
  program
    .command('audit')
    .description(
      'list who did what, newest first: sign-ins, connections, and every change of accounts, clients and access',
    )
    .option(
      '--account <account>',
      'only this person: email address, or account ID, also of a deleted account',
    )
    .option('--client <id>', 'only this client, also a deleted one')
    .addOption(
      new Option('--action <action>', 'only this kind of action').choices([...ACTIONS].sort()),
    )
    .addOption(new Option('--actor <actor>', 'only actions of these actors').choices(ACTORS))
    .option('--request <id>', 'only this request: the ID req_… in answers and in the log')
    .option('--import <id>', 'only this import: the ID imp_… that the import printed')
    .option(
      '--since <time>',
      'only from this time on: 7d, 12h, 30m, or 2026-01-31T08:00Z',
      parseTime,
    )
    .option('--until <time>', 'only before this time, in the same form', parseTime)
    .option('--limit <number>', `maximum number of entries, up to ${MAX}`, wholeNumber(MAX), 100)
    .option(
      '--before <id>',
      'only entries older than this one: the next page',
      wholeNumber(Number.MAX_SAFE_INTEGER),
    )
    .action((options: AuditOptions) =>
      run(async (registries) => {
        const { account, client: clientId, request: requestId, ...others } = options;
        const { import: importId, ...question } = others;
        const accountId = account && (await accountIdNamed(registries, account));
        const about = { accountId, clientId, requestId, importId };
        const found = await registries.audit.find({ ...question, ...about });
        return { value: found.map(recordValue), text: textOf(found, options.limit) };
      }),
    );
}

/** Looks up an address, but no ID: the log of a deleted account still exists under its ID. */
async function accountIdNamed(registries: Registries, name: string): Promise<string> {
  return isAccountId(name) ? name : (await accountNamed(registries, name)).id;
}

function textOf(found: readonly AuditRecord[], limit: number): string {
  const rows = found.map((record) => {
    const { what, about, note } = describeAction(record);
    const details = [about, note && `(${note})`].filter(Boolean).join(' ');
    return [
      timeOf(record.at),
      whoOf(record),
      what,
      details,
      ofWhom(record),
      requestOrigin(record),
      record.by?.reason ?? '',
      record.requestId ?? '',
    ];
  });
  const heading = ['TIME', 'WHO', 'WHAT', 'ABOUT', 'OF', 'FROM', 'REASON', 'REQUEST'];
  const last = found.length === limit ? found.at(-1) : undefined;
  const more = last && `\n\nThere may be older entries: add --before ${last.id}`;
  return table(heading, rows, 'No entry matches these options.') + (more ?? '');
}

const timeOf = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;

const personOf = ({ email, accountId }: AuditRecord): string => email ?? accountId ?? '';

const whoOf = (record: AuditRecord): string =>
  record.actor === 'person'
    ? personOf(record)
    : `(${[record.actor, record.by?.operator].filter(Boolean).join(' ')})`;

/** Returns the person in whose log the record is, if that person is not the actor. */
const ofWhom = (record: AuditRecord): string => (record.actor === 'person' ? '' : personOf(record));

const requestOrigin = ({ origin }: AuditRecord): string => origin?.address ?? '';

const recordValue = (record: AuditRecord) => {
  const { id, at, actor, action, accountId, email, details, origin, by, requestId } = record;
  return {
    id,
    at,
    actor,
    action,
    what: describeAction(record).what,
    account_id: accountId ?? null,
    email: email ?? null,
    details,
    operator: by?.operator ?? null,
    reason: by?.reason ?? null,
    address: origin?.address ?? null,
    browser: origin?.browser ?? null,
    request_id: requestId ?? null,
  };
};
