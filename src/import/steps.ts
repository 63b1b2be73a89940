/** The steps of an import, in order: dependents are added last and removed first. */

import {
  batchesOf,
  type ImportLine,
  type ImportSource,
  type ImportType,
  type LineOf,
  type Numbered,
} from '../changes/line.ts';
import type { Queries } from '../storage/queries.ts';
import { compareAccounts } from './accounts.ts';
import type { ImportFacts, ImportStep, SetLine } from './change.ts';
import type { ImportIndex } from './import-index.ts';
import { isAnythingNewer, isOf, isOutdated, type NamedType, recordTimes } from './known-times.ts';
import { compareAccess } from './memberships.ts';
import { comparePlaces } from './places.ts';
import { PRUNED_TYPES, prunePage } from './prune.ts';
import { findThings, type LineThing } from './things.ts';

/** Maximum number of lines per batch and rows per page: far below the limits of a query. */
export const BATCH_SIZE = 500;

export interface ImportPlan {
  readonly source: ImportSource;
  /** The result of `checkImport` for the source. */
  readonly index: ImportIndex;
  /** True to remove things that were imported before and are not in the file. */
  readonly prune: boolean;
  /** See `ImportFacts.adoptByName`. */
  readonly adoptByName: boolean;
  /** See `ImportFacts.asOf`. */
  readonly asOf: Date;
}

/** Compares with the database, in the transaction in which the step may be written afterwards. */
export type Compare = (queries: Queries) => Promise<ImportStep>;

export interface RunStep {
  readonly type: ImportType;
  readonly step: ImportStep;
  readonly lines: number;
  /** Number of compared things that could be pruned; absent if the step prunes nothing. */
  readonly imported?: number;
}

/** Warehouses move after the memberships: members of their new organization keep their rights. */
const PASSES: readonly (readonly [type: ImportType, isLater?: boolean])[] = [
  ['organization'],
  ['warehouse', false],
  ['account'],
  ['membership'],
  ['warehouse', true],
  ['warehouse_rights'],
];

const isLater = (line: ImportLine): boolean => line.type === 'warehouse' && line.former_organization !== undefined;

/** @param run calls `compare`, then writes the step unless it is a dry run. */
export async function* stepsOf(
  plan: ImportPlan,
  facts: ImportFacts,
  run: (compare: Compare) => Promise<ImportStep>,
): AsyncIterable<RunStep> {
  for (const [type, later = false] of PASSES) {
    if (later && !plan.index.hasMoves) continue;
    for await (const batch of batchesOf(plan.source, type, BATCH_SIZE)) {
      const lines = batch.filter((line) => isLater(line) === later);
      if (lines.length === 0) continue;
      const step = await run((queries) => compareCurrent(queries, type, lines, facts));
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

/** Compares the lines without a newer pushed change; `recordTimes` records their time. */
async function compareCurrent(
  queries: Queries,
  type: ImportType,
  lines: readonly Numbered[],
  facts: ImportFacts,
): Promise<ImportStep> {
  const { asOf, now, index, skipped } = facts;
  let current = lines;
  let adopting: readonly Numbered[] = [];
  if (await isAnythingNewer(queries, asOf)) {
    const { things, times } = await findThings(queries, lines, index);
    const isCurrent = (thing: LineThing<Numbered>) =>
      !isOutdated(times, thing, asOf, { isImport: true }) &&
      !thing.named.some(([type, { external }]) => skipped.has(`${type} ${external}`));
    const [kept, older] = [things.filter(isCurrent), things.filter((thing) => !isCurrent(thing))];
    current = kept.map(({ line }) => line);
    adopting = older.flatMap(adoptionOnly);
    // The file's other lines about a record that this import does not add must not miss the record.
    for (const { line, own } of older) {
      if ('external_id' in line && own === undefined) skipped.add(`${type} ${line.external_id}`);
    }
  }
  const step = await compareLines(queries, type, [...current, ...adopting] as never, facts);
  return {
    ...step,
    newer: lines.length - current.length,
    async recordTimes(tx) {
      const { things, times } = await findThings(tx, current, index);
      const changed = things.filter((thing) => !isOf(times, thing, asOf));
      const recorded = changed.map((thing) => ({ ...thing, asOf }));
      await recordTimes(tx, recorded, { now, byImport: true });
    },
  };
}

/** An older line still gives a person that a command added their external id, and nothing else. */
const adoptionOnly = ({ line, own }: LineThing<Numbered>): Numbered[] => {
  if (line.type !== 'account' || own?.name === undefined || own.external_id !== null) return [];
  const { suspended: _, ...rest } = line;
  return [{ ...rest, name: own.name }];
};

export function compareLines<Type extends ImportType>(
  queries: Queries,
  type: Type,
  lines: readonly LineToSet<Type>[],
  facts: ImportFacts,
): Promise<ImportStep> {
  if (lines.length === 0) return Promise.resolve({ changes: [], write: async () => [] });
  return COMPARISONS[type](queries, lines, facts);
}

type LineToSet<Type extends ImportType> = Type extends NamedType ? SetLine<Type> : Numbered<LineOf<Type>>;

const COMPARISONS: {
  readonly [Type in ImportType]: (
    queries: Queries,
    lines: readonly LineToSet<Type>[],
    facts: ImportFacts,
  ) => Promise<ImportStep>;
} = {
  organization: comparePlaces('organization'),
  warehouse: comparePlaces('warehouse'),
  account: compareAccounts,
  membership: compareAccess('membership'),
  warehouse_rights: compareAccess('warehouse_rights'),
};
