/** Splits lists into pages: the database finds the matches and counts the items after the page. */
import { Refusal } from '../base/refusal.ts';
import type { Queries } from './queries.ts';

export interface PageRequest {
  /** Returns only items with this text in one of their cells, in any letter case. */
  readonly match?: string | undefined;
  /** Returns only items after the item with this id. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The number of items after this page. */
  readonly more: number;
}

interface ListQuery {
  /** A statement whose columns have names, one of them `id`. */
  readonly select: string;
  /** ORDER BY for the columns of `select`; the last column must be unique. */
  readonly order: string;
  /** Text expressions that `match` searches. */
  readonly cells: readonly string[];
  readonly values?: readonly unknown[];
}

/** Compares all letters, including non-ASCII ones, in the same way in every locale of the database. */
const ANY_LOCALE = 'COLLATE "und-x-icu"';

/** Returns an expression for ORDER BY that sorts numbers in names by value: `a 9` before `a 10`. */
export const byName = (column: string): string =>
  `regexp_replace(regexp_replace(${column}, '(\\d+)', '0000000000\\1', 'g'), '0*(\\d{10})', '\\1', 'g')
    ${ANY_LOCALE}`;

/** @throws Refusal `after_unknown` */
export async function pageOf<Row extends object>(
  queries: Queries,
  { select, order, cells, values = [] }: ListQuery,
  { match, after, limit }: PageRequest,
): Promise<Page<Row>> {
  const [$match, $after, $limit] = [1, 2, 3].map((place) => `$${values.length + place}`);
  const text = `lower(concat_ws(E'\\n', ${cells.join(', ')}) ${ANY_LOCALE})`;
  const rows = await queries.query<Row & { found: number; place: number }>(
    `WITH list AS (
        SELECT it.*, row_number() OVER (ORDER BY ${order}) AS place FROM (${select}) AS it
      )
      SELECT *, count(*) OVER ()::integer AS found FROM list
      WHERE (${$match}::text IS NULL OR strpos(${text}, lower(${$match}::text ${ANY_LOCALE})) > 0)
        AND (${$after}::text IS NULL OR place > (SELECT place FROM list WHERE id = ${$after}))
      ORDER BY place LIMIT ${$limit}`,
    [...values, match ?? null, after ?? null, limit ?? null],
  );
  if (rows.length === 0 && after !== undefined) {
    const idOf = `SELECT FROM (${select}) AS it WHERE id = $${values.length + 1}`;
    const known = await queries.query(idOf, [...values, after]);
    if (known.length === 0) throw unknownAfter(after);
  }
  const items = rows.map(({ found: _, place: __, ...row }) => row as unknown as Row);
  return { items, more: (rows[0]?.found ?? 0) - rows.length };
}

function unknownAfter(after: string): Refusal {
  const remedy = 'Start again without --after: the entry may have been removed meanwhile.';
  return new Refusal('after_unknown', `${after} is not in this list.`, remedy);
}

/**
 * Returns a page of a small list that is in memory.
 *
 * @param cellsOf the first cell must be the id, by which `after` is found.
 * @throws Refusal `after_unknown`
 */
export function cutPage<Item>(
  all: readonly Item[],
  cellsOf: (item: Item) => readonly string[],
  { match = '', after, limit }: PageRequest,
): Page<Item> {
  const start = after === undefined ? 0 : all.findIndex((item) => cellsOf(item)[0] === after) + 1;
  if (after !== undefined && start === 0) throw unknownAfter(after);
  const fits = (cell: string): boolean => cell.toLowerCase().includes(match.toLowerCase());
  const found = all.slice(start).filter((item) => cellsOf(item).some(fits));
  const items = found.slice(0, limit);
  return { items, more: found.length - items.length };
}

/** Converts the items of a page. */
export const mapPage = <From, To>(
  { items, more }: Page<From>,
  to: (item: From) => To,
): Page<To> => ({
  items: items.map(to),
  more,
});
