/** A page of what was imported once, and what of it goes. */
import type { Queries } from '../../storage/queries.ts';
import type { ImportChange, ImportFacts, ImportStep } from './change.ts';
import type { ImportKey } from './line.ts';

export interface PrunePage {
  readonly step: ImportStep;
  /** How many imported things were looked at: those that could be removed. */
  readonly present: number;
  /** Where the next page begins; undefined after the last one. */
  readonly next: string | undefined;
}

export interface PageRequest {
  /** The `next` of the page before; undefined for the first one. */
  readonly after: string | undefined;
  readonly size: number;
}

export type PrunePages = (
  queries: Queries,
  page: PageRequest,
  facts: ImportFacts,
) => Promise<PrunePage>;

export const removal = (
  key: ImportKey,
  fields: NonNullable<ImportChange['fields']>,
): ImportChange => ({
  change: 'removed',
  key,
  fields,
});

export async function remove(
  tx: Queries,
  table: 'warehouse_rights' | 'organization_memberships' | 'warehouses' | 'organizations',
  rows: readonly { readonly id: string }[],
): Promise<void> {
  // A deletion, even of nothing, would make every node forget what is reached.
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${table} WHERE id = ANY($1)`, [rows.map(({ id }) => id)]);
}

/**
 * @param cursor the column that the pages are in the order of.
 * @param present how many of the rows were imported; all of them unless said.
 */
export function pageOf<Column extends string>(
  rows: readonly Readonly<Record<Column, string>>[],
  {
    size,
    cursor,
    present = rows.length,
  }: { readonly size: number; readonly cursor: Column; readonly present?: number },
  step: ImportStep,
): PrunePage {
  const last = rows.length < size ? undefined : rows.at(-1);
  return { step, present, next: last?.[cursor] };
}
