/** Everything that an import does, in order: what others refer to comes first, and is removed last. */
import type { Queries } from '../storage/queries.ts';
import { compareAccounts } from './accounts.ts';
import type { ImportFacts, ImportStep } from './change.ts';
import type { ImportIndex } from './known-ids.ts';
import {
  batchesOf,
  type ImportLine,
  type ImportSource,
  type ImportType,
  type LineOf,
  type Numbered,
} from './line.ts';
import { compareAccess } from './memberships.ts';
import { comparePlaces } from './places.ts';
import { PRUNED_TYPES, prunePage } from './prune.ts';

/** Of lines, and of pages: a transaction of so many stays far below the limits of a query. */
const BATCH_SIZE = 500;

export interface ImportPlan {
  readonly source: ImportSource;
  /** What `checkImport` answered of the source. */
  readonly index: ImportIndex;
  /** Remove what was imported once and is not in the file. */
  readonly prune: boolean;
  /** As of `ImportFacts`. */
  readonly adoptByName: boolean;
}

/** Looks at the database, in the transaction in which the step may then be written. */
export type Look = (queries: Queries) => Promise<ImportStep>;

export interface RunStep {
  readonly type: ImportType;
  readonly step: ImportStep;
  readonly lines: number;
  /** How many things were looked at that could be pruned; absent of what prunes nothing. */
  readonly imported?: number;
}

/** Of what a line is, some wait for others: who is a member there keeps the rights in what moves. */
const PASSES: readonly (readonly [type: ImportType, isLater?: boolean])[] = [
  ['organization'],
  ['warehouse', false],
  ['account'],
  ['membership'],
  ['warehouse', true],
  ['warehouse_rights'],
];

const isLater = (line: ImportLine): boolean =>
  line.type === 'warehouse' && line.former_organization !== undefined;

/** @param run looks, and writes what was found or does not. */
export async function* stepsOf(
  plan: ImportPlan,
  facts: ImportFacts,
  run: (look: Look) => Promise<ImportStep>,
): AsyncIterable<RunStep> {
  for (const [type, later = false] of PASSES) {
    if (later && !plan.index.hasMoves) continue;
    for await (const batch of batchesOf(plan.source, type, BATCH_SIZE)) {
      const lines = batch.filter((line) => isLater(line) === later);
      if (lines.length === 0) continue;
      const step = await run((queries) => compareLines(queries, type, lines, facts));
      yield { type, step, lines: lines.length };
    }
  }
  if (!plan.prune) return;
  for (const type of PRUNED_TYPES) {
    let after: string | undefined;
    do {
      let imported = 0;
      let next: string | undefined;
      const step = await run(async (queries) => {
        const page = await prunePage(type)(queries, { after, size: BATCH_SIZE }, facts);
        ({ next, present: imported } = page);
        return page.step;
      });
      yield { type, step, lines: 0, imported };
      after = next;
    } while (after !== undefined);
  }
}

function compareLines<Type extends ImportType>(
  queries: Queries,
  type: Type,
  lines: readonly Numbered<LineOf<Type>>[],
  facts: ImportFacts,
): Promise<ImportStep> {
  return COMPARISONS[type](queries, lines, facts);
}

const COMPARISONS: {
  readonly [Type in ImportType]: (
    queries: Queries,
    lines: readonly Numbered<LineOf<Type>>[],
    facts: ImportFacts,
  ) => Promise<ImportStep>;
} = {
  organization: comparePlaces('organization'),
  warehouse: comparePlaces('warehouse'),
  account: compareAccounts,
  membership: compareAccess('membership'),
  warehouse_rights: compareAccess('warehouse_rights'),
};
