/** Brings accounts, organizations, warehouses and memberships to the state in a file. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Activity } from '../accounts/activity/activity.ts';
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { ImportType } from '../changes/line.ts';
import type { Database } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import { type ImportLock, ImportLockLost, type ImportLockOptions, lockImports } from './import-lock.ts';
import { type BrokenImport, createFoundProblems, ImportInterrupted, ImportProblems } from './import-problems.ts';
import { createImportTally, type ImportReport, recordImport } from './import-report.ts';
import { lockKnownTimes } from './known-times.ts';
import { type Pruned, type PruneLimit, pruneExcess } from './prune-limit.ts';
import { type Compare, type ImportPlan, stepsOf } from './steps.ts';

interface CarryOutOptions {
  readonly lock: ImportLock;
  /** The id of the import, which its audit entries contain; see `newImportId`. */
  readonly id: string;
  readonly show?: ShowProgress;
}

/** Returns `imp_` and 16 random characters. */
export const newImportId = (): string => randomId('imp_', 16);

/** Called after each step with the number of lines done so far. */
type ShowProgress = (lines: number) => void;

/** Pauses before each retry of a batch: a busy database must not end the import. */
const RETRY_PAUSES_MS = [250, 1_000];

export function createImporter(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'recordAll'>;
  /** True if a new organization asks first, unless its line says otherwise; false by default. */
  readonly asksFirst?: boolean;
}) {
  const { database, clock, activity, asksFirst = false } = parts;
  const nothing = () => ({ ids: new Map(), externalIds: new Map() });
  const factsOf = ({ index, adoptByName, asOf }: ImportPlan): ImportFacts => ({
    index,
    asOf,
    now: new Date(clock()),
    problems: createFoundProblems(),
    adoptByName,
    asksFirst,
    skipped: new Set(),
    adopted: { organization: nothing(), warehouse: nothing(), account: nothing() },
  });

  /** Compares again inside the transaction, and writes the differences found there. */
  async function write({ lock, id }: CarryOutOptions, compare: Compare): Promise<ImportStep> {
    return database.transaction(async (tx) => {
      await lock.requireHeld(tx);
      await lockKnownTimes(tx);
      const step = await compare(tx);
      if (step.changes.some(({ change }) => change !== 'kept')) {
        const records = await step.write(tx);
        await activity.recordAll(
          records.map((record) => asImported(record, id)),
          tx,
        );
      }
      await step.recordTimes?.(tx);
      return step;
    });
  }

  return {
    lock: (options: ImportLockOptions) => lockImports(database, options),

    /**
     * Returns what `carryOut` would change; writes nothing.
     *
     * @throws ImportProblems
     */
    async compare(
      plan: ImportPlan,
      { pruneAtMost, show }: { readonly pruneAtMost: PruneLimit; readonly show?: ShowProgress },
    ): Promise<ImportReport> {
      const facts = factsOf(plan);
      const tally = createImportTally();
      const steps = stepsOf(plan, facts, (compare) => withRetries(() => compare(database)));
      const pruned = new Map<ImportType, Pruned>();
      let compared = 0;
      for await (const { type, step, lines, imported } of steps) {
        tally.add(type, step, lines);
        compared += lines;
        show?.(compared);
        if (imported === undefined) continue;
        const { present = 0, removed = 0 } = pruned.get(type) ?? {};
        const gone = step.changes.filter(({ change }) => change === 'removed').length;
        pruned.set(type, { present: present + imported, removed: removed + gone });
      }
      facts.problems.refuse();
      const excess = pruneExcess(pruned, pruneAtMost);
      return { ...tally.report(), ...(excess && { excess }) };
    },

    /**
     * Writes the differences, a few hundred lines per transaction, so as not to block a running
     * service. Repeat an interrupted import: the repetition writes only the missing differences.
     * Each run also records in the database that it ran.
     *
     * @throws ImportInterrupted
     */
    async carryOut(plan: ImportPlan, options: CarryOutOptions): Promise<void> {
      const facts = factsOf(plan);
      const tally = createImportTally();
      let kept = 0;
      let compared = 0;
      try {
        const steps = stepsOf(plan, facts, (compare) =>
          withRetries(() =>
            write(options, async (tx) => {
              const step = await compare(tx);
              // A problem that the comparison did not find: the database has changed since.
              facts.problems.refuse();
              return step;
            }),
          ),
        );
        for await (const { type, step, lines } of steps) {
          tally.add(type, step, lines);
          kept += step.changes.filter(({ change }) => change !== 'kept').length;
          compared += lines;
          options.show?.(compared);
        }
        await withRetries(() => recordImport(database, new Date(clock()), tally.report()));
      } catch (error) {
        throw interruption(error, { kept, id: options.id }) ?? error;
      }
    },
  };
}

export type Importer = ReturnType<typeof createImporter>;

const asImported = (record: Awaited<ReturnType<ImportStep['write']>>[number], id: string) => ({
  ...record,
  actor: 'operator' as const,
  details: { ...record.details, by: 'import', import_id: id },
});

/** Retrying is safe: if an attempt has written but its answer was lost, no difference is left. */
async function withRetries<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (const pause of RETRY_PAUSES_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      await delay(pause);
    }
  }
  return attempt();
}

function interruption(error: unknown, broken: BrokenImport): ImportInterrupted | undefined {
  if (error instanceof StorageUnavailable) {
    const reason = `the database does not answer (${error.reason})`;
    return new ImportInterrupted(broken, reason, error);
  }
  if (error instanceof ImportLockLost) {
    const reason = 'this import made no progress for so long that another import has started';
    return new ImportInterrupted(broken, reason, error);
  }
  const meanwhile = 'another process changed the same data in the meantime';
  if (error instanceof ImportProblems) {
    const [first] = error.problems;
    return new ImportInterrupted(broken, `${meanwhile} (line ${first?.line}: ${first?.message})`, error);
  }
  // A violated constraint means a change after the comparison, such as an address taken since.
  const isOvertaken = error instanceof Error && 'constraint' in error && error.constraint;
  return isOvertaken ? new ImportInterrupted(broken, meanwhile, error) : undefined;
}
