/** Applies pushed lines in their order, in batches, and answers each of them. */
import type { Activity } from '../accounts/activity/activity.ts';
import { emailKey } from '../accounts/email.ts';
import type { Clock } from '../base/clock.ts';
import { constraintOf, Refusal } from '../base/refusal.ts';
import type { Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { Difference } from './change.ts';
import { type Changes, isOvertaken, isTooLong, RETRIED_SHARE, retried } from './engine.ts';
import { isBroken } from './line.ts';
import { MAX_AHEAD_MS, type PushedLine, readPushedLines, removes } from './pushed-line.ts';
import type { RemovalLimit } from './removal-limit.ts';
import { type Resolved, resolve } from './resolve.ts';
import { isDeleted, isOutdated, readTimes } from './times.ts';

/** The result of one line. `not_done` means that PostgreSQL did not answer. */
export interface LineAnswer {
  readonly line: number;
  readonly result: 'ok' | 'unchanged' | 'outdated' | 'refused' | 'held_back' | 'not_done';
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

const MAX_LINES = 1_000;
/** The pauses are few and short, because the sender waits for the answer. */
const RETRY_PAUSES_MS = [100, 400];
const BATCH_SIZE = 500;
/** The small batch size for lines that may each change many other rows: one timeout applies to the whole batch. */
const HEAVY_BATCH_SIZE = 20;
const isHeavy = (line: PushedLine): boolean =>
  ('deleted' in line && line.deleted === true) ||
  ('former_organization' in line && line.former_organization !== undefined);

export function createPushedChanges(parts: {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly removals: RemovalLimit;
  /** Returns an activity log that records the sender's name with each pushed change. */
  readonly activityOf: (sender: string) => Pick<Activity, 'recordAll'>;
  /** Returns the default for new organizations: true if an organization must approve clients before they get access. */
  readonly asksFirst: () => boolean;
}) {
  const { changes, clock, removals, activityOf, asksFirst } = parts;

  /** Applies all lines or none. The lines have one type, and are about different records. */
  const write = (lines: readonly PushedLine[], sender: string): Promise<LineAnswer[]> =>
    changes.transaction((tx, now) => writeIn(tx, now, lines, sender).catch(inParts(lines)), 'pushes');

  async function writeIn(tx: Queries, now: Date, lines: readonly PushedLine[], sender: string): Promise<LineAnswer[]> {
    const answers = new Map<number, LineAnswer>();
    const answer = (line: number, result: LineAnswer['result'], why?: Refusal): void =>
      void answers.set(line, { line, result, ...(why && reasonOf(why)) });
    const resolved = await resolve(tx, lines);
    const known = resolved.filter(({ missing }) => !missing).map(({ change }) => change);
    const records = known.map(({ id, account_id, warehouse_id, organization_id }) =>
      [id, account_id, warehouse_id ?? organization_id].join(' '),
    );
    // Two lines can name the same record by different names.
    if (new Set(records).size < records.length) throw new PartsNeeded();
    await answerMissing(tx, resolved, answer);
    const { differences, outdated, problems } = await changes.make(tx, now, known, {
      by: { actor: 'operator', isSystem: true, asksFirst: asksFirst(), details: { by: 'changes' } },
      activity: activityOf(sender),
      allow: (_, found) => limited(tx, found, (line) => answer(line, 'held_back')),
    });
    if (problems[0]) throw lineRefused(problems[0].message);
    const changed = new Set(differences.map(({ change }) => change.number));
    for (const { number = 0 } of outdated) answer(number, changed.has(number) ? 'ok' : 'outdated');
    for (const { number = 0 } of known) {
      if (!answers.has(number)) answer(number, changed.has(number) ? 'ok' : 'unchanged');
    }
    return lines.flatMap(({ number }) => answers.get(number) ?? []);
  }

  /** Leaves out lines that would exceed the limit of removals. One line may remove several records. */
  async function limited(tx: Queries, found: readonly Difference[], holdBack: (line: number) => void) {
    const removing = found.filter(isRemoval);
    if (removing.length === 0) return found;
    let left = Math.max(0, await removals.left(tx, removing.length));
    const isHeldBack = new Set<number>();
    for (const [line = 0, { length: cost }] of Map.groupBy(removing, ({ change }) => change.number)) {
      if (cost <= left) left -= cost;
      else isHeldBack.add(line);
    }
    isHeldBack.forEach(holdBack);
    const allowed = found.filter(({ change: { number = 0 } }) => !isHeldBack.has(number));
    const made = allowed.filter(isRemoval).length;
    if (made > 0) await removals.record(tx, made);
    return allowed;
  }

  /**
   * Applies a batch. If the batch is refused or takes too long, applies parts of it in their order, so that only wrong
   * lines are refused.
   */
  async function* apply(lines: readonly PushedLine[], sender: string): AsyncIterable<LineAnswer> {
    try {
      yield* await retried(() => write(lines, sender), RETRY_PAUSES_MS);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal && lines.length === 1) {
        for (const { number: line } of lines) yield { line, result: 'refused', ...reasonOf(refusal) };
        return;
      }
      if (!refusal && !(error instanceof PartsNeeded)) throw error;
      const size = Math.ceil(lines.length / RETRIED_SHARE);
      for (let at = 0; at < lines.length; at += size) yield* apply(lines.slice(at, at + size), sender);
    }
  }

  return {
    /**
     * Returns an answer for each line.
     * @throws Refusal `too_many_lines`, before a line was applied
     */
    async push(body: Buffer, sender: string): Promise<LineAnswer[]> {
      const now = new Date(clock());
      const lines = [...readPushedLines(body)];
      if (lines.length > MAX_LINES) throw tooManyLines(lines.length);
      const answers = new Map<number, LineAnswer>();
      const valid = lines.filter((line): line is PushedLine => {
        const refusal = isBroken(line) ? invalid(line.problems) : futureOf(line, now);
        const { number } = line;
        if (!refusal) return true;
        answers.set(number, { line: number, result: 'refused', ...reasonOf(refusal) });
        return false;
      });
      try {
        for (const batch of batchesOf(valid)) {
          for await (const one of apply(batch, sender)) answers.set(one.line, one);
        }
      } catch (error) {
        if (!(error instanceof StorageUnavailable)) throw error;
        const why = reasonOf(notDone(error.code));
        for (const { number: line } of valid) {
          if (!answers.has(line)) answers.set(line, { line, result: 'not_done', ...why });
        }
      }
      const held = [...answers.values()].filter(({ result }) => result === 'held_back');
      for (const one of held) answers.set(one.line, { ...one, ...reasonOf(heldBack(held.length)) });
      return lines.flatMap(({ number }) => answers.get(number) ?? []);
    },
  };
}

/** Thrown if smaller parts of a batch may succeed. A batch that waited too long in the queue is not split. */
class PartsNeeded extends Error {}

const inParts = (lines: readonly PushedLine[]) => (error: unknown) => {
  throw isTooLong(error) && lines.length > 1 ? new PartsNeeded() : error;
};

function* batchesOf(lines: readonly PushedLine[]): Iterable<readonly PushedLine[]> {
  let batch: PushedLine[] = [];
  let names = new Set<string>();
  for (const line of lines) {
    const [before] = batch;
    const own = ownNames(line);
    const isOtherKind =
      before && (before.type !== line.type || removes(before) !== removes(line) || isHeavy(before) !== isHeavy(line));
    const max = isHeavy(line) ? HEAVY_BATCH_SIZE : BATCH_SIZE;
    if (isOtherKind || batch.length === max || own.some((name) => names.has(name))) {
      yield batch;
      batch = [];
      names = new Set();
    }
    batch.push(line);
    for (const name of own) names.add(name);
  }
  if (batch.length > 0) yield batch;
}

/** Returns the names of the line's record. If batched lines name a record differently, `write` throws PartsNeeded. */
function ownNames(line: PushedLine): string[] {
  if (line.type === 'membership' || line.type === 'warehouse_rights') {
    const { account, account_id, account_email } = line;
    const place =
      line.type === 'membership' ? [line.organization, line.organization_id] : [line.warehouse, line.warehouse_id];
    return [JSON.stringify([account, account_id, account_email, ...place])];
  }
  const { external_id, id } = line;
  const former = 'former_external_id' in line ? line.former_external_id : undefined;
  const email = 'email' in line && line.email ? emailKey(line.email) : undefined;
  return [external_id, id, former, email].flatMap((name, at) =>
    typeof name === 'string' ? [`${at === 2 ? 0 : at} ${name}`] : [],
  );
}

async function answerMissing(
  tx: Queries,
  resolved: readonly Resolved[],
  answer: (line: number, result: LineAnswer['result'], why?: Refusal) => void,
): Promise<void> {
  const lost = resolved.filter(({ missing }) => missing);
  if (lost.length === 0) return;
  const times = await readTimes(
    tx,
    lost.map(({ change }) => change),
    { withDeleted: true },
  );
  for (const { line, change, missing } of lost) {
    if (isOutdated(times, change)) answer(line.number, 'outdated');
    else if (removes(line) && isDeleted(times, change)) answer(line.number, 'unchanged');
    else answer(line.number, 'refused', missing);
  }
}

/** A suspension is a removal, too: it ends the person's access. */
const isRemoval = ({ kind, fields }: Difference): boolean =>
  kind === 'removed' || (kind === 'changed' && fields.suspended?.[1] === true);

const reasonOf = ({ code, message, remedy }: Refusal) => ({ code, message, remedy });

/** @returns undefined if the line did not cause the error */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const constraint = constraintOf(error);
  if (constraint !== undefined) return (VIOLATIONS[constraint] ?? overtaken)();
  return isOvertaken(error) ? overtaken() : undefined;
}

/** Splits a message of the engine into the problem and, after the semicolon, the remedy. */
function lineRefused(text: string): Refusal {
  const [message, ...remedy] = text.split('; ');
  return new Refusal('line_refused', `${message}.`, remedy.join('; '));
}

/** The maximum number of problems in an answer, because one line may have thousands. */
const MAX_PROBLEMS = 5;

const invalid = (problems: readonly string[]): Refusal =>
  new Refusal('line_invalid', problems.slice(0, MAX_PROBLEMS).join(' '), 'Correct the line, and send it again.');

const VIOLATIONS: Readonly<Record<string, () => Refusal>> = {
  warehouse_rights_account_membership_fkey: () =>
    new Refusal(
      'membership_missing',
      'The account is not a member of the organization of the warehouse.',
      'Send the membership before the rights.',
    ),
  clients_owner_account_id_fkey: () =>
    new Refusal(
      'account_owns_clients',
      'The account owns clients, which need an owner.',
      'Suspend the account (leave out "deleted"), or first run: gatehouse clients transfer.',
    ),
};

const overtaken = (): Refusal =>
  new Refusal('line_overtaken', 'Another request changed the same data at the same time.', 'Send the line again.');

function futureOf({ as_of: asOf }: PushedLine, now: Date): Refusal | undefined {
  if (asOf === undefined || asOf.getTime() <= now.getTime() + MAX_AHEAD_MS) return undefined;
  return new Refusal(
    'as_of_in_future',
    `as_of: ${asOf.toISOString()} is more than 5 minutes in the future; the server has ${now.toISOString()}.`,
    'Correct the clock of the sender, and send the line again.',
  );
}

const heldBack = (removals: number): Refusal =>
  new Refusal(
    'held_back',
    'The line would remove more within an hour than import.removals_per_hour allows.',
    `If this is intended, run: gatehouse changes allow ${removals}. Then send the line again.`,
  );

const notDone = (code: StorageUnavailable['code']): Refusal =>
  new Refusal(
    code,
    code === 'statement_too_long'
      ? 'The database did not finish within the time limit.'
      : 'The database did not answer.',
    'Send the line again. If the line was applied after all, the answer is "unchanged".',
  );

const tooManyLines = (count: number): Refusal =>
  new Refusal(
    'too_many_lines',
    `The request has ${count} lines; at most ${MAX_LINES} are allowed.`,
    'Split the lines into several requests, in the same order.',
  );
