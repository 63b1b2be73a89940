/** Applies pushed lines in their order, in batches, with the steps of the import. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Activity } from '../accounts/activity/activity.ts';
import { isDeleted, isOutdated, lockKnownTimes } from '../accounts/known-times.ts';
import type { Clock } from '../base/clock.ts';
import type { Refusal } from '../base/refusal.ts';
import { createSharedTurns } from '../storage/account-turns.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { ImportActivity } from './change.ts';
import { isBroken } from './line.ts';
import {
  futureOf,
  heldBack,
  invalid,
  isPassing,
  type LineAnswer,
  MAX_LINES,
  notDone,
  reasonOf,
  refusalOf,
  tooManyLines,
} from './pushed-answers.ts';
import { type PushedLine, readPushedLines, removes } from './pushed-line.ts';
import { isRemoval, recordPushed, stepOf } from './pushed-step.ts';
import type { RemovalLimit } from './removal-limit.ts';
import { BATCH_SIZE } from './steps.ts';
import { findThings } from './things.ts';

/** Pauses before a batch is retried after a deadlock or without an answer of the database. */
const RETRY_PAUSES_MS = [100, 400];

/** How many requests wait for the running one. They wait for its lock anyway, but without a connection. */
const MAX_WAITING = 1_000;

export function createPushedChanges(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly removals: RemovalLimit;
  /** Returns a log that records changes with the name of the sender. */
  readonly activityOf: (sender: string) => Pick<Activity, 'recordAll'>;
  /** Returns true if a new organization asks first, unless its line says otherwise. */
  readonly asksFirst: () => boolean;
}) {
  const { database, clock, removals, activityOf, asksFirst } = parts;
  const inTurn = createSharedTurns(MAX_WAITING);

  /** Applies all lines or none. The lines have one type, and are about different records. */
  async function write(tx: Queries, lines: readonly PushedLine[], sender: string): Promise<LineAnswer[]> {
    const now = await lockKnownTimes(tx);
    const answers = new Map<number, LineAnswer>();
    const answer = ({ number: line }: PushedLine, result: LineAnswer['result'], why?: Refusal) =>
      void answers.set(line, { line, result, ...(why && reasonOf(why)) });
    const { things, times } = await findThings(tx, lines);
    const current = things.filter((thing) => {
      const { line, missing } = thing;
      if (isOutdated(times, thing, line.as_of ?? now, { isImport: false })) answer(line, 'outdated');
      else if (missing === undefined) return true;
      else if (removes(line) && isDeleted(times, thing)) answer(line, 'unchanged');
      else answer(line, 'refused', missing);
      return false;
    });

    let allowed = current;
    let step = await stepOf(tx, allowed, { now, asksFirst: asksFirst() });
    const wanted = step.changes.filter(isRemoval).length;
    if (wanted > 0) {
      let left = await removals.left(tx, wanted);
      const costs = Map.groupBy(step.changes.filter(isRemoval), ({ line }) => line);
      allowed = current.filter(({ line }) => {
        const cost = costs.get(line.number)?.length ?? 0;
        if (cost > Math.max(0, left)) {
          answer(line, 'held_back');
          return false;
        }
        left -= cost;
        return true;
      });
      if (allowed.length < current.length) step = await stepOf(tx, allowed, { now, asksFirst: asksFirst() });
      const removed = step.changes.filter(isRemoval).length;
      if (removed > 0) await removals.record(tx, removed);
    }
    const changed = new Set(step.changes.map(({ line }) => line));
    if (changed.size > 0) {
      const records = await step.write(tx);
      await activityOf(sender).recordAll(records.map(asPushed), tx);
    }
    for (const { line } of allowed) answer(line, changed.has(line.number) ? 'ok' : 'unchanged');
    await recordPushed(tx, allowed, now);
    return lines.flatMap(({ number }) => answers.get(number) ?? []);
  }

  async function inTransaction(lines: readonly PushedLine[], sender: string): Promise<LineAnswer[]> {
    const attempt = () => inTurn('push', () => database.transaction((tx) => write(tx, lines, sender)));
    for (const pause of RETRY_PAUSES_MS) {
      try {
        return await attempt();
      } catch (error) {
        if (!isPassing(error)) throw error;
        await delay(pause);
      }
    }
    return attempt();
  }

  /** Applies a batch. If it is refused, applies its lines one by one: only wrong ones are refused. */
  async function* apply(lines: readonly PushedLine[], sender: string): AsyncIterable<LineAnswer> {
    const [first] = lines;
    if (first === undefined) return;
    try {
      yield* await inTransaction(lines, sender);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      if (lines.length === 1) {
        yield { line: first.number, result: 'refused', ...reasonOf(refusal) };
      } else for (const line of lines) yield* apply([line], sender);
    }
  }

  return {
    /**
     * Applies the lines of a request, and returns an answer for each.
     *
     * @throws Refusal `too_many_lines` (then no line is applied)
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
      let code: StorageUnavailable['code'] = 'storage_unavailable';
      try {
        for (const batch of batchesOf(valid)) {
          for await (const one of apply(batch, sender)) answers.set(one.line, one);
        }
      } catch (error) {
        if (!(error instanceof StorageUnavailable)) throw error;
        ({ code } = error);
      }
      const held = [...answers.values()].filter(({ result }) => result === 'held_back').length;
      return lines.map(({ number: line }) => {
        const found = answers.get(line);
        if (found === undefined) return { line, result: 'not_done', ...reasonOf(notDone(code)) };
        return found.result === 'held_back' ? { ...found, ...reasonOf(heldBack(held)) } : found;
      });
    },
  };
}

/** Starts a new batch if the type changes, removals start or end, or a name occurs again. */
function* batchesOf(lines: readonly PushedLine[]): Iterable<readonly PushedLine[]> {
  let batch: PushedLine[] = [];
  let names = new Set<string>();
  for (const line of lines) {
    const [before] = batch;
    const own = ownNames(line);
    const isOtherKind = before && (before.type !== line.type || removes(before) !== removes(line));
    if (isOtherKind || batch.length === BATCH_SIZE || own.some((name) => names.has(name))) {
      yield batch;
      batch = [];
      names = new Set();
    }
    batch.push(line);
    for (const name of own) names.add(name);
  }
  if (batch.length > 0) yield batch;
}

/** Returns the names of a line. If two names mean one record, `stepOf` refuses the batch. */
function ownNames(line: PushedLine): string[] {
  if (line.type === 'membership' || line.type === 'warehouse_rights') {
    const { account, account_id, account_email } = line;
    const place =
      line.type === 'membership' ? [line.organization, line.organization_id] : [line.warehouse, line.warehouse_id];
    return [JSON.stringify([account, account_id, account_email, ...place])];
  }
  const { external_id, id } = line;
  const former = 'former_external_id' in line ? line.former_external_id : undefined;
  const email = line.type === 'account' ? line.email?.toLowerCase() : undefined;
  return [external_id, id, former, email].flatMap((name, at) =>
    typeof name === 'string' ? [`${at === 2 ? 0 : at} ${name}`] : [],
  );
}

const asPushed = (record: ImportActivity) => ({
  ...record,
  actor: 'operator' as const,
  details: { ...record.details, by: 'changes' },
});
