/** Brings accounts, organizations, warehouses and memberships to the state in a file. */
import type { Activity } from '../accounts/activity/activity.ts';
import type { Clock } from '../base/clock.ts';
import { constraintOf, Refusal } from '../base/refusal.ts';
import { type Database, type Queries, raise } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { By, Change, Difference } from './change.ts';
import { type Changes, isOvertaken, isTooLong, type Outcome, RETRIED_SHARE, retried } from './engine.ts';
import { chooseFile, forgetFiles, type SetsOfFile, sizesOf } from './known-files.ts';
import type { BrokenLine, ImportKey, ImportType, Numbered } from './line.ts';
import { fileRules, forgetIds, type Plan, pageOf, type StagedLine } from './pages.ts';
import { createFoundProblems, ImportInterrupted, ImportProblems } from './problems.ts';
import { type Absent, PRUNED_TYPES, type Pruned, type PruneLimit, pruneExcess, prunePage } from './prune.ts';
import { createImportTally, type ImportChange, type ImportReport } from './report.ts';
import { beginRun, type Run } from './runs.ts';
import { checkRules, isNamed, keyOfId, PAGE_SIZE, READ_SIZE, type Staged, stage, typeOf } from './stage.ts';
import { fileIdOf } from './times.ts';

/** A function that is called with the number of lines done so far. */
type ShowProgress = ((lines: number) => void) | undefined;

/** The intended duration of a batch. Pages wait for a batch, so one that takes twice as long delays them by 0.3 s. */
const MAX_BATCH_MS = 150;
/** A smaller batch would not be faster: on a slow database, round trips alone take the planned time. */
const LEAST_BATCH = 25;
/** Size of the first batch of each type, when the time for a line is still unknown. */
export const FIRST_BATCH = 50;

export function createImporter(parts: {
  readonly database: Database;
  readonly engine: Changes;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'recordAll'>;
  /** True if a new organization must approve clients first, unless its line says otherwise; false by default. */
  readonly asksFirst?: boolean;
}) {
  const { database, engine, clock, activity, asksFirst = false } = parts;

  const whileHeld = <Result>(run: Run, work: (tx: Queries, now: Date) => Promise<Result>): Promise<Result> =>
    engine.transaction(async (tx, now) => {
      await run.requireHeld(tx);
      return work(tx, now);
    });

  /**
   * Compares all lines, and all records that the file lacks.
   *
   * @param write absent for a dry run, which compares in the same way
   */
  async function compareAll(run: Run, plan: Plan, { show, write }: { show: ShowProgress; write?: Writing }) {
    const tally = createImportTally();
    const problems = createFoundProblems();
    const pruned = new Map<ImportType, Pruned>();
    /** How many records of the file are in each set of records (known-files.ts). */
    const files = new Map<string, number>();
    const by: By = { actor: 'operator', isSystem: true, asksFirst, details: { by: 'import', import_id: run.id } };
    const options = { by, activity, file: fileRules(plan, write?.fileId), isDryRun: write === undefined };
    let size = READ_SIZE;

    async function inTransaction<Result>(work: (tx: Queries, now: Date) => Promise<Result>): Promise<Result> {
      if (!write) return retried(() => work(database, new Date(clock())));
      return retried(() =>
        whileHeld(run, async (tx, now) => {
          const begin = performance.now();
          const result = await work(tx, now);
          size = sizeAfter(size, performance.now() - begin);
          return result;
        }).catch((error: unknown) => {
          if (isTooLong(error)) size = Math.ceil(size / RETRIED_SHARE);
          throw error;
        }),
      );
    }

    let done = 0;
    /** Runs `work` for each page of a pass. Counts lines after the page's transaction: a retry runs `work` again. */
    async function eachPage<At>(
      type: ImportType,
      work: (tx: Queries, now: Date, after?: At) => Promise<ComparedPage<At>>,
    ) {
      let after: At | undefined;
      if (write) size = Math.min(size, FIRST_BATCH);
      do {
        const from = after;
        const page = await inTransaction((tx, now) => work(tx, now, from));
        for (const change of page.changes) {
          const fileId = fileIdOf(page.times, change);
          if (fileId) files.set(fileId, (files.get(fileId) ?? 0) + 1);
        }
        for (const { number = 0, message } of page.wrong ?? []) problems.add(number, message);
        const { shown, count: lines = 0, present } = page;
        tally.add(type, { changes: shown, newer: page.newer + page.outdated.length, lines });
        if (write) write.kept += page.differences.length;
        const before = pruned.get(type) ?? { present: 0, removed: 0 };
        const removed = before.removed + page.differences.length;
        if (present !== undefined) pruned.set(type, { present: before.present + present, removed });
        done += lines;
        if (lines > 0) show?.(done);
        after = page.next;
      } while (after !== undefined);
    }

    for (const pass of plan.passes) {
      await eachPage<number>(typeOf(pass), async (tx, now, after = 0) => {
        // In a dry run, do not read lines of later pages: they would be shown twice, because nothing is written.
        const found = await pageOf(tx, plan, pass, { after, size, maxMore: write ? size : 0 });
        const outcome = await engine.make(tx, now, found.changes, options);
        const made = new Set(outcome.differences.map(({ change }) => change.number));
        const lost = outcome.outdated.filter(({ number }) => !made.has(number));
        await forgetIds(tx, plan, lost);
        const wrong = [...found.problems, ...outcome.problems.map(({ change, message }) => ({ ...change, message }))];
        if (write) refuse(wrong);
        const shown = await shownOf(tx, outcome.differences, found.lines, plan);
        return { ...found, ...outcome, wrong, shown };
      });
    }
    for (const type of plan.prune ? PRUNED_TYPES : []) {
      await eachPage<string>(type, async (tx, now, after) => {
        const found = await prunePage(tx, plan, type, { after, size });
        const changes = found.gone.map(({ change }) => change);
        const outcome = await engine.make(tx, now, changes, options);
        const removing = (pruned.get(type)?.removed ?? 0) + outcome.differences.length;
        if (write) requireAllowed(type, removing, write.compared);
        const made = new Set(outcome.differences.map(({ change }) => change));
        const removed = found.gone.filter(({ change }) => made.has(change));
        const shown = [
          ...removed.map((one) => shownAbsent(one, 'removed')),
          ...found.kept.map((one) => shownAbsent(one, 'kept')),
        ];
        // Also count removed records: `chooseFile` need not take them out of their set, because the removal does.
        return { ...found, ...outcome, changes, shown };
      });
    }
    // Check at the end that the stored lines still exist. If they do, each comparison has seen all of them.
    await run.requireHeld(database);
    problems.refuse();
    return { report: tally.report(), pruned, files };
  }

  return {
    begin: (): Promise<Run> => beginRun(database),

    /**
     * Stores the lines of the file until the run is disposed.
     *
     * @throws ImportProblems with everything that is wrong within the file
     */
    async stage(run: Run, file: AsyncIterable<readonly (Numbered | BrokenLine)[]>): Promise<Staged> {
      const problems = createFoundProblems();
      const staged = await stage(database, run.id, file, problems);
      await checkRules(database, run.id, staged, problems);
      await run.requireHeld(database);
      problems.refuse();
      return staged;
    },

    /**
     * Returns what `carryOut` would change. Writes nothing.
     *
     * @throws ImportProblems
     */
    async compare(
      run: Run,
      plan: ImportPlan,
      { pruneAtMost, show }: { readonly pruneAtMost: PruneLimit; readonly show?: ShowProgress },
    ): Promise<Compared & { readonly report: ImportReport }> {
      const all = { ...plan, importId: run.id };
      const sizes = await sizesOf(database);
      const { report, pruned, files } = await compareAll(run, all, { show });
      const excess = pruneExcess(pruned, pruneAtMost);
      return { report: { ...report, ...(excess && { excess }) }, files, sizes, pruned, pruneAtMost };
    },

    /**
     * Writes the differences in transactions of a few hundred lines, so as not to block a running service. An
     * interrupted import can be repeated: the repetition writes only the missing differences. The database also records
     * that the import ran.
     * @throws ImportInterrupted
     */
    async carryOut(
      run: Run,
      plan: ImportPlan,
      { show, ...compared }: Compared & { readonly show?: ShowProgress },
    ): Promise<void> {
      const all = { ...plan, importId: run.id };
      const write: Writing = { kept: 0, fileId: '', compared };
      try {
        const step = <Result>(work: (tx: Queries) => Promise<Result>): Promise<Result> =>
          retried(() => whileHeld(run, work));
        write.fileId = await chooseFile(step, all, compared);
        await compareAll(run, all, { write, show });
        // Store the time in the database: the service, which is another process, shows it as a metric.
        await retried(() => raise(database, 'imported_at', database.now()));
        await retried(() => forgetFiles(database));
      } catch (error) {
        throw interruption(error, { kept: write.kept, id: run.id }) ?? error;
      }
    },
  };
}

export type ImportPlan = Omit<Plan, 'importId'>;

interface Compared extends SetsOfFile {
  readonly pruned: ReadonlyMap<ImportType, Pruned>;
  readonly pruneAtMost: PruneLimit;
}

type Wrong = { readonly number?: number; readonly message: string };

interface ComparedPage<At> extends Pick<Outcome, 'differences' | 'outdated' | 'times'> {
  readonly changes: readonly Change[];
  readonly shown: readonly ImportChange[];
  readonly newer: number;
  readonly next: At | undefined;
  readonly wrong?: readonly Wrong[];
  /** How many lines were compared. */
  readonly count?: number;
  /** How many imported records this page has compared. */
  readonly present?: number;
}

interface Writing {
  readonly compared: Compared;
  /** How many changes were written. */
  kept: number;
  fileId: string;
}

/** Returns the size of the next batch, after a batch of `size` lines took `ms`. */
function sizeAfter(size: number, ms: number): number {
  if (ms > MAX_BATCH_MS) return Math.max(Math.min(size, LEAST_BATCH), Math.ceil(size / 2));
  return ms < MAX_BATCH_MS / 3 || size < LEAST_BATCH ? Math.min(PAGE_SIZE, size * 2) : size;
}

/**
 * Checks the limit of removals again. Since the file was compared, another import may have added records, or outdated
 * lines may have become current.
 * @throws Refusal `prune_over_limit`, which rolls back the transaction
 */
function requireAllowed(type: ImportType, removed: number, { pruned, pruneAtMost }: Compared): void {
  const present = Math.max(removed, pruned.get(type)?.present ?? 0);
  const excess = pruneExcess(new Map([[type, { present, removed }]]), pruneAtMost);
  if (excess) throw excess.refusal;
}

/** @throws ImportProblems if there are any */
function refuse(wrong: readonly Wrong[]): void {
  const problems = createFoundProblems();
  for (const { number = 0, message } of wrong) problems.add(number, message);
  problems.refuse();
}

function interruption(error: unknown, broken: { id: string; kept: number }): ImportInterrupted | undefined {
  const because = (reason: string) => new ImportInterrupted(broken, reason, error);
  if (error instanceof StorageUnavailable) return because(`the database does not answer (${error.reason})`);
  if (error instanceof Refusal) return because(error.message.replace(/^The/, 'the').replace(/\.$/, ''));
  const meanwhile = 'another process changed the same data in the meantime';
  if (error instanceof ImportProblems) {
    const [first] = error.problems;
    return because(`${meanwhile} (line ${first?.line}: ${first?.message})`);
  }
  // A constraint is violated if the data changed after the comparison, for example if an address was taken.
  return constraintOf(error) !== undefined || isOvertaken(error) ? because(meanwhile) : undefined;
}

async function shownOf(
  tx: Queries,
  differences: readonly Difference[],
  lines: ReadonlyMap<number, StagedLine>,
  { importId }: Plan,
): Promise<ImportChange[]> {
  const isLost = ({ change: { type, end } }: Difference) => type === 'warehouse_rights' && end !== undefined;
  const lost = differences.filter(isLost);
  const rows =
    lost.length > 0 &&
    (await tx.query<{ id: string; key: string | null }>(
      `SELECT s.id, ${keyOfId('s.id')} AS key FROM unnest($2::text[]) AS s (id)`,
      [importId, lost.map(({ change }) => change.account_id ?? null)],
    ));
  const keys = new Map((rows || []).map(({ id, key }) => [id, key]));
  return differences.map((one) => {
    const line = lines.get(one.change.number ?? 0) ?? {};
    return isLost(one) ? shownLost(one, line, keys) : shown(one, line);
  });
}

function shown({ change: { type }, kind, fields }: Difference, line: StagedLine): ImportChange {
  const { account, organization, warehouse, external_id } = line;
  if (type === 'membership') return { change: kind, key: { type, account, organization } as ImportKey, fields };
  if (type === 'warehouse_rights') return { change: kind, key: { type, account, warehouse } as ImportKey, fields };
  const { asks_first: asks, organization_id: moved, suspended, ...others } = fields;
  const policy = (isAsking: unknown): string => (isAsking === true ? 'ask' : 'open');
  const all = {
    ...others,
    ...(suspended && { suspended }),
    ...(asks && { clients: [policy(asks[0]), policy(asks[1])] as const }),
    ...(moved && { organization: [line.former_organization ?? null, organization ?? null] as const }),
  };
  const some = kind === 'added' ? { ...(suspended?.[1] === true && { suspended }) } : all;
  return {
    change: kind,
    key: { type, external_id } as ImportKey,
    name: (type === 'account' ? line.email : line.name) ?? '',
    ...(Object.keys(some).length > 0 && { fields: some }),
  };
}

/** Shows rights that end because their warehouse moves. */
function shownLost({ after }: Difference, line: StagedLine, keys: ReadonlyMap<string, string | null>): ImportChange {
  const { account_id, client_id, account: external, subject_name, rights } = after as Readonly<Record<string, never>>;
  return {
    change: 'removed',
    key: {
      type: 'warehouse_rights',
      account: keys.get(account_id as never) ?? external ?? account_id ?? client_id ?? '',
      warehouse: line.external_id ?? '',
    },
    name: subject_name ?? '',
    fields: { rights: [rights ?? null, null] },
  };
}

function shownAbsent({ change: { type }, key, name, present }: Absent, change: 'removed' | 'kept'): ImportChange {
  const fields = isNamed(type)
    ? type === 'account' && { suspended: [false, true] as const }
    : { [type === 'membership' ? 'role' : 'rights']: [present ?? null, null] as const };
  return { change, key, ...(name !== undefined && { name }), ...(fields && { fields }) };
}
