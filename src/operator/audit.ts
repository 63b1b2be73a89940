/** `operator audit`: who changed what, who signed in, what was revoked, and from where. */
import { type Command, Option } from 'commander';
import { isAccountId } from '../accounts/account.ts';
import type { ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, type Action, wordsOf } from '../accounts/activity/activity-words.ts';
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
      'who did what, newest first: sign-ins, connections, every change of who may do what',
    )
    .option('--account <account>', 'of this person: email address, or account ID, deleted ones too')
    .option('--client <id>', 'about this client, deleted ones too')
    .addOption(new Option('--action <action>', 'of this kind').choices([...ACTIONS].sort()))
    .addOption(new Option('--actor <actor>', 'done by one of these').choices(ACTORS))
    .option('--request <id>', 'made by this request: req_…, as answers and the log name it')
    .option('--import <id>', 'made by this import: imp_…, as it printed it')
    .option('--since <time>', 'from then on: 7d, 12h, 30m, or 2026-01-31T08:00Z', parseTime)
    .option('--until <time>', 'before then, likewise', parseTime)
    .option('--limit <number>', `at most so many, up to ${MAX}`, wholeNumber(MAX), 100)
    .option(
      '--before <id>',
      'older than this one: the next page',
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

/** Does not look up an ID: the log of a deleted account still exists under its ID. */
async function accountIdNamed(registries: Registries, name: string): Promise<string> {
  return isAccountId(name) ? name : (await accountNamed(registries, name)).id;
}

function textOf(found: readonly AuditRecord[], limit: number): string {
  const rows = found.map((record) => {
    const { what, about, note } = wordsOf(record);
    const details = [about, note && `(${note})`].filter(Boolean).join(' ');
    return [
      timeOf(record.at),
      whoOf(record),
      what,
      details,
      ofWhom(record),
      originOf(record),
      record.by?.reason ?? '',
      record.requestId ?? '',
    ];
  });
  const heading = ['TIME', 'WHO', 'WHAT', 'ABOUT', 'OF', 'FROM', 'REASON', 'REQUEST'];
  const last = found.length === limit ? found.at(-1) : undefined;
  const more = last && `\n\nThere may be older ones: add --before ${last.id}`;
  return table(heading, rows, 'Nothing is recorded that fits.') + (more ?? '');
}

const timeOf = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;

const personOf = ({ email, accountId }: AuditRecord): string => email ?? accountId ?? '';

const whoOf = (record: AuditRecord): string =>
  record.actor === 'person'
    ? personOf(record)
    : `(${[record.actor, record.by?.operator].filter(Boolean).join(' ')})`;

/** The person whose log the record is in, if the actor is not that person. */
const ofWhom = (record: AuditRecord): string => (record.actor === 'person' ? '' : personOf(record));

const originOf = ({ origin }: AuditRecord): string => origin?.address ?? '';

const recordValue = (record: AuditRecord) => {
  const { id, at, actor, action, accountId, email, details, origin, by, requestId } = record;
  return {
    id,
    at,
    actor,
    action,
    what: wordsOf(record).what,
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
