/** `operator audit`: who changed what, who signed in, what was revoked, and from where. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { isAccountId } from '../accounts/account.ts';
import type { ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, type Action, actionInEnglish } from '../accounts/activity/activity-words.ts';
import { type AuditRecord, auditEntry } from '../accounts/activity/audit.ts';
import { type AuditTrail, MAX_PAGE } from '../accounts/activity/audit-trail.ts';
import { Refusal } from '../base/refusal.ts';
import { isAway } from '../storage/storage-unavailable.ts';
import { parseTime, wholeNumber } from './command/arguments.ts';
import { accountNamed } from './command/names.ts';
import type { Operator, Report } from './command/operator.ts';
import { printable, table } from './command/report.ts';
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
  readonly after?: string;
  readonly follow?: true;
}

const ACTORS: readonly ActivityRecord['actor'][] = ['person', 'operator', 'client', 'service', 'organization'];
const MAX = 10_000;
const POLL_MS = 1_000;

export function addAuditCommand(program: Command, operator: Operator): void {
  const { run } = operator;
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
    .option('--after <cursor>', 'entries after this place in the log, oldest first; start: from the first')
    .option('--follow', 'print each entry when it is recorded, until interrupted')
    .action((options: AuditOptions) =>
      run(async (registries) => {
        if (options.after !== undefined || options.follow) {
          return readOn(registries.auditTrail, options, operator);
        }
        const { account, client: clientId, request: requestId, ...others } = options;
        const { import: importId, ...question } = others;
        const accountId = account && (await accountIdNamed(registries, account));
        const about = { accountId, clientId, requestId, importId };
        const found = await registries.audit.find({ ...question, ...about });
        const value = found.map((one) => ({ ...auditEntry(one), email: one.email ?? null }));
        return { value, text: textOf(found, options.limit) };
      }),
    );
}

/** Reads by cursor. With `--follow`, prints entries until the command is interrupted. */
async function readOn(
  trail: AuditTrail,
  { after, follow, limit, ...filters }: AuditOptions,
  { stdout, stderr, onInterrupt, json }: Operator,
): Promise<Report> {
  if (Object.keys(filters).length > 0) throw withFilters;
  if (!follow) {
    const { entries, next, more } = await trail.page(after ?? 'start', limit);
    const text = tableOf(entries.map(({ record }) => record));
    const rest = `${more ? 'There are later entries' : 'For later entries'}: add --after ${next}`;
    return { value: entries.map(({ line }) => line), text: `${text}\n\n${rest}` };
  }
  const interruption = new AbortController();
  const { signal } = interruption;
  const interrupt = () => interruption.abort();
  onInterrupt(interrupt);
  // The reader may be gone, as after `| head`.
  stdout.once('error', interrupt);
  let next = after ?? (await trail.end());
  let isSilent = false;
  async function read(): Promise<Pick<Awaited<ReturnType<AuditTrail['page']>>, 'entries' | 'more'>> {
    try {
      const page = await trail.page(next, MAX_PAGE);
      isSilent = false;
      return page;
    } catch (error) {
      if (!isAway(error)) throw error;
      // Each attempt may take seconds: say it once.
      if (!isSilent) stderr.write(`Trying again until the database answers (${error.reason}).\n`);
      isSilent = true;
      return { entries: [], more: false };
    }
  }
  while (!signal.aborted) {
    const page = await read();
    for (const { record, line } of page.entries) {
      if (signal.aborted) break;
      const text = json ? JSON.stringify(line) : auditLine(record);
      next = line.cursor;
      // Wait for a slow reader: the log may be larger than the memory.
      if (!stdout.write(`${text}\n`)) await once(stdout, 'drain', { signal }).catch(() => {});
    }
    if (!page.more) await delay(POLL_MS, undefined, { signal }).catch(() => {});
  }
  return { value: undefined, text: `To continue: gatehouse audit --follow --after ${next}` };
}

const withFilters = new Refusal(
  'options_conflict',
  '--after and --follow read the whole log, without a filter.',
  'Leave the other options out, except --limit and --json, or leave out --after and --follow.',
);

/** Looks up an address, but no ID: the log of a deleted account still exists under its ID. */
async function accountIdNamed(registries: Registries, name: string): Promise<string> {
  return isAccountId(name) ? name : (await accountNamed(registries, name)).id;
}

const HEADING = ['TIME', 'WHO', 'WHAT', 'ABOUT', 'OF', 'FROM', 'REASON', 'REQUEST'];

function rowOf(record: AuditRecord): string[] {
  const { what, about, note } = actionInEnglish(record);
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
}

/** An entry in one line. */
export const auditLine = (record: AuditRecord): string => printable(rowOf(record).filter(Boolean).join('  '));

const tableOf = (found: readonly AuditRecord[]): string =>
  table(HEADING, found.map(rowOf), 'No entry matches these options.');

function textOf(found: readonly AuditRecord[], limit: number): string {
  const last = found.length === limit ? found.at(-1) : undefined;
  const more = last && `\n\nThere may be older entries: add --before ${last.id}`;
  return tableOf(found) + (more ?? '');
}

const timeOf = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;

const personOf = ({ email, accountId }: AuditRecord): string => email ?? accountId ?? '';

const whoOf = (record: AuditRecord): string =>
  record.actor === 'person' ? personOf(record) : `(${[record.actor, record.by?.operator].filter(Boolean).join(' ')})`;

/** Returns the person in whose log the record is, if that person is not the actor. */
const ofWhom = (record: AuditRecord): string => (record.actor === 'person' ? '' : personOf(record));

const requestOrigin = ({ origin }: AuditRecord): string => origin?.address ?? '';
