/** Brings accounts, organizations, warehouses and memberships to the state that a file describes. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { Refusal } from '../../refusal.ts';
import type { Database } from '../../storage/queries.ts';
import { StorageUnavailable } from '../../storage/storage-unavailable.ts';
import type { Activity } from '../activity.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import type { ImportType } from './line.ts';
import { createFoundProblems, ImportInterrupted, ImportProblems } from './problems.ts';
import { PRUNED_TYPES } from './prune.ts';
import { createImportTally, type ImportReport } from './report.ts';
import { type ImportPlan, type Look, stepsOf } from './steps.ts';

export interface Importer {
  /**
   * What `carryOut` would change; writes nothing.
   *
   * @throws ImportProblems, or Refusal `prune_removes_most`
   */
  compare(plan: ImportPlan, options: { mayPruneMost: boolean }): Promise<ImportReport>;
  /**
   * Writes what differs, some hundred lines in a transaction, so that a service beside it is not
   * held up. Repeated, it writes nothing; broken off, it is to be repeated.
   *
   * @throws ImportInterrupted
   */
  carryOut(plan: ImportPlan): Promise<void>;
}

/** Pauses before a batch is tried again, in milliseconds: a busy database is no reason to give up. */
const PAUSES = [250, 1_000];
/** Of two imports at once each batch waits for the other one's, and sees what it did. */
const ONE_IMPORT = "SELECT pg_advisory_xact_lock(hashtext('gatehouse import'))";

export function createImporter(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'recordAll'>;
}): Importer {
  const { database, clock, activity } = parts;
  const factsOf = ({ index }: ImportPlan): ImportFacts => ({
    index,
    now: new Date(clock()),
    problems: createFoundProblems(),
    adopted: new Map(),
    adoptedAs: new Map(),
  });

  /** Looks again inside of the transaction, and writes what it finds there. */
  async function write(look: Look): Promise<ImportStep> {
    return database.transaction(async (tx) => {
      await tx.query(ONE_IMPORT);
      const step = await look(tx);
      if (step.changes.some(({ change }) => change !== 'kept')) {
        const records = await step.write(tx);
        await activity.recordAll(records.map(asImported), tx);
      }
      return step;
    });
  }

  return {
    async compare(plan, { mayPruneMost }) {
      const facts = factsOf(plan);
      const tally = createImportTally();
      const steps = stepsOf(plan, facts, (look) => withPatience(() => look(database)));
      const present = new Map<ImportType, number>();
      for await (const { type, step, lines, imported } of steps) {
        tally.note(type, step.changes, lines);
        present.set(type, (present.get(type) ?? 0) + imported);
      }
      facts.problems.refuse();
      const report = tally.report();
      const most = mostPruned(report, present);
      if (most && !mayPruneMost) throw most;
      return { ...report, ...(most && { prunesMost: most.message }) };
    },

    async carryOut(plan) {
      const facts = factsOf(plan);
      let kept = 0;
      try {
        const steps = stepsOf(plan, facts, (look) =>
          withPatience(() =>
            write(async (tx) => {
              const step = await look(tx);
              // Somebody else changed something since the comparison.
              facts.problems.refuse();
              return step;
            }),
          ),
        );
        for await (const { step } of steps) {
          kept += step.changes.filter(({ change }) => change !== 'kept').length;
        }
      } catch (error) {
        throw interruption(error, kept) ?? error;
      }
    },
  };
}

const asImported = (record: Awaited<ReturnType<ImportStep['write']>>[number]) => ({
  ...record,
  actor: 'operator' as const,
  details: { ...record.details, by: 'import' },
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

function interruption(error: unknown, kept: number): ImportInterrupted | undefined {
  if (error instanceof StorageUnavailable) {
    const reason = `the database does not answer (${error.reason})`;
    return new ImportInterrupted(kept, reason, error);
  }
  const meanwhile = 'somebody changed the same things meanwhile';
  if (error instanceof ImportProblems) {
    const [first] = error.problems;
    return new ImportInterrupted(
      kept,
      `${meanwhile} (line ${first?.line}: ${first?.message})`,
      error,
    );
  }
  // A violated constraint: an address was taken, or an organization removed, after it was looked at.
  const isOvertaken = error instanceof Error && 'constraint' in error && error.constraint;
  return isOvertaken ? new ImportInterrupted(kept, meanwhile, error) : undefined;
}

/** An export that broke off must not remove everybody. */
function mostPruned(
  { counts }: ImportReport,
  present: ReadonlyMap<ImportType, number>,
): Refusal | undefined {
  const most = PRUNED_TYPES.filter((type) => counts[type].removed > (present.get(type) ?? 0) / 2);
  if (most.length === 0) return undefined;
  const parts = most.map(
    (type) => `${counts[type].removed} of ${present.get(type)} ${PLURALS[type]}`,
  );
  return new Refusal(
    'prune_removes_most',
    `--prune would remove more than half of what was imported: ${parts.join(', ')}.`,
    'See that the file is complete. If it is, add --prune-most; --dry-run shows the difference.',
  );
}

/** As people are told of several. */
export const PLURALS: Readonly<Record<ImportType, string>> = {
  organization: 'organizations',
  warehouse: 'warehouses',
  account: 'accounts',
  membership: 'memberships',
  warehouse_rights: 'rights in warehouses',
};
