/** Brings accounts, organizations, warehouses and memberships to the state that a file describes. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Activity } from '../accounts/activity/activity.ts';
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { Database } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import {
  type ImportLock,
  ImportLockLost,
  type ImportLockOptions,
  lockImports,
} from './import-lock.ts';
import type { ImportType } from './line.ts';
import {
  type BrokenImport,
  createFoundProblems,
  ImportInterrupted,
  ImportProblems,
} from './problems.ts';
import { type Pruned, type PruneLimit, pruneExcess } from './prune-limit.ts';
import { createImportTally, type ImportReport, noteImport } from './report.ts';
import { type ImportPlan, type Look, stepsOf } from './steps.ts';

interface CarryOutOptions {
  readonly lock: ImportLock;
  /** The audit entries of the import carry it; see `newImportId`. */
  readonly id: string;
  readonly tell?: Tell;
}

/** Makes the id of an import: `imp_` and 16 characters. */
export const newImportId = (): string => randomId('imp_', 16);

/** Is told of each step how many lines were looked at by then. */
export type Tell = (lines: number) => void;

/** Pauses before a batch is tried again, in milliseconds: a busy database is no reason to give up. */
const PAUSES = [250, 1_000];
/** An import of a version without `running_import` takes this lock only, for each batch. */
const ONE_BATCH = "SELECT pg_advisory_xact_lock(hashtext('gatehouse import'))";

export function createImporter(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'recordAll'>;
}) {
  const { database, clock, activity } = parts;
  const nothing = () => ({ ids: new Map(), externalIds: new Map() });
  const factsOf = ({ index, adoptByName }: ImportPlan): ImportFacts => ({
    index,
    now: new Date(clock()),
    problems: createFoundProblems(),
    adoptByName,
    adopted: { organization: nothing(), warehouse: nothing(), account: nothing() },
  });

  /** Looks again inside of the transaction, and writes what it finds there. */
  async function write({ lock, id }: CarryOutOptions, look: Look): Promise<ImportStep> {
    return database.transaction(async (tx) => {
      await lock.requireHeld(tx);
      await tx.query(ONE_BATCH);
      const step = await look(tx);
      if (step.changes.some(({ change }) => change !== 'kept')) {
        const records = await step.write(tx);
        await activity.recordAll(
          records.map((record) => asImported(record, id)),
          tx,
        );
      }
      return step;
    });
  }

  return {
    /**
     * Waits until no other import is running, and keeps others from beginning.
     *
     * @throws Refusal `import_running`
     */
    lock: (options: ImportLockOptions) => lockImports(database, options),

    /**
     * What `carryOut` would change; writes nothing.
     *
     * @throws ImportProblems
     */
    async compare(
      plan: ImportPlan,
      { pruneAtMost, tell }: { readonly pruneAtMost: PruneLimit; readonly tell?: Tell },
    ): Promise<ImportReport> {
      const facts = factsOf(plan);
      const tally = createImportTally();
      const steps = stepsOf(plan, facts, (look) => withPatience(() => look(database)));
      const pruned = new Map<ImportType, Pruned>();
      let looked = 0;
      for await (const { type, step, lines, imported } of steps) {
        tally.note(type, step.changes, lines);
        looked += lines;
        tell?.(looked);
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
     * Writes what differs, some hundred lines in a transaction, so that a service beside it is not
     * held up. Repeated, it writes nothing but that it ran; broken off, it is to be repeated.
     *
     * @throws ImportInterrupted
     */
    async carryOut(plan: ImportPlan, options: CarryOutOptions): Promise<void> {
      const facts = factsOf(plan);
      const tally = createImportTally();
      let kept = 0;
      let looked = 0;
      try {
        const steps = stepsOf(plan, facts, (look) =>
          withPatience(() =>
            write(options, async (tx) => {
              const step = await look(tx);
              // Somebody else changed something since the comparison.
              facts.problems.refuse();
              return step;
            }),
          ),
        );
        for await (const { type, step, lines } of steps) {
          tally.note(type, step.changes, lines);
          kept += step.changes.filter(({ change }) => change !== 'kept').length;
          looked += lines;
          options.tell?.(looked);
        }
        await withPatience(() => noteImport(database, new Date(clock()), tally.report()));
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

/** A batch may be repeated: what an attempt wrote whose answer was lost is simply there already. */
async function withPatience<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (const pause of PAUSES) {
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
    const reason = 'it stood still for so long that another import has begun';
    return new ImportInterrupted(broken, reason, error);
  }
  const meanwhile = 'somebody changed the same things meanwhile';
  if (error instanceof ImportProblems) {
    const [first] = error.problems;
    return new ImportInterrupted(
      broken,
      `${meanwhile} (line ${first?.line}: ${first?.message})`,
      error,
    );
  }
  // A violated constraint: an address was taken, or an organization removed, after it was looked at.
  const isOvertaken = error instanceof Error && 'constraint' in error && error.constraint;
  return isOvertaken ? new ImportInterrupted(broken, meanwhile, error) : undefined;
}
