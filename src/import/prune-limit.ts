/** Limits what `--prune` removes: a truncated export would otherwise remove nearly everything. */
import { Refusal } from '../base/refusal.ts';
import { IMPORT_TYPES, type ImportType, PLURALS } from '../changes/line.ts';

/** `import.prune_at_most` or `--prune-at-most`: `10%` of each kind, or a number of each. */
export type PruneLimit = string;

/** For one kind: how many imported things would be removed, and how many exist. */
export interface Pruned {
  readonly removed: number;
  readonly present: number;
}

export interface PruneExcess {
  readonly refusal: Refusal;
  /** A percentage that would permit the removal. */
  readonly needed: PruneLimit;
}

/** @returns undefined if the limit allows everything that would be removed. */
export function pruneExcess(pruned: ReadonlyMap<ImportType, Pruned>, limit: PruneLimit): PruneExcess | undefined {
  const beyond = IMPORT_TYPES.flatMap((type) => {
    const { removed, present } = pruned.get(type) ?? NOTHING;
    return removed > allowed(present, limit) ? [{ type, removed, present }] : [];
  });
  if (beyond.length === 0) return undefined;
  const parts = beyond.map(({ type, removed, present }) => `${removed} of ${present} ${PLURALS[type]}`);
  const percents = beyond.map(({ removed, present }) => (100 * removed) / present);
  const needed = `${Math.ceil(Math.max(...percents))}%`;
  const refusal = new Refusal(
    'prune_over_limit',
    `--prune would remove ${parts.join(', ')}; the limit is ${limit} of each kind.`,
    'Check that the file is complete; --dry-run shows the difference. If it is complete, ' +
      `add --prune-at-most ${needed}.`,
  );
  return { refusal, needed };
}

const NOTHING: Pruned = { removed: 0, present: 0 };

/** Rounds up, so that one of a few things can be removed; only `100%` removes all of a kind. */
function allowed(present: number, limit: PruneLimit): number {
  if (limit === '100%') return present;
  const max = limit.endsWith('%') ? Math.ceil((present * Number(limit.slice(0, -1))) / 100) : Number(limit);
  return Math.min(max, Math.max(0, present - 1));
}
