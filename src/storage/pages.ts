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
  /** The number of items after this page; `MAX_MORE + 1` if there are more than `MAX_MORE`. */
  readonly more: number;
}

/** How many items after a page are counted, because counting reads them. */
export const MAX_MORE = 1_000;

interface ListQuery {
  /** A statement whose columns have names, one of them `id`. */
  readonly select: string;
  /** Expressions to sort by; the last one must be unique, and none may be null. A long list needs their index. */
  readonly order: readonly string[];
  /** True to sort by all of them in descending order. */
  readonly isDescending?: boolean;
  /** Text expressions that `match` searches. */
  readonly cells: readonly string[];
  readonly values?: readonly unknown[];
  /** Returns the condition for the item with the id in a parameter, if no index has the column `id`. */
  readonly hasId?: (parameter: string) => string;
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
  { select, order, isDescending, cells, values = [], hasId = (id) => `id = ${id}` }: ListQuery,
  { match, after, limit }: PageRequest,
): Promise<Page<Row>> {
  const given = [...values];
  const use = (value: unknown): string => `$${given.push(value)}`;
  const keys = order.join(', ');
  const sorted = order.map((key) => `${key}${isDescending ? ' DESC' : ''}`).join(', ');
  const text = `lower(concat_ws(E'\\n', ${cells.join(', ')}) ${ANY_LOCALE})`;
  const conditions: string[] = [];
  if (match !== undefined)
    conditions.push(`strpos(${text}, lower(${use(match)}::text ${ANY_LOCALE})) > 0`);
  const afterIt = (parameter: string) => `FROM (${select}) AS it WHERE ${hasId(parameter)}`;
  if (after !== undefined)
    conditions.push(
      `(${keys}) ${isDescending ? '<' : '>'} (SELECT ${keys} ${afterIt(use(after))})`,
    );
  const rows = await queries.query<Row & { found: number }>(
    `WITH page AS (
        SELECT * FROM (${select}) AS it ${conditions.length > 0 ? 'WHERE' : ''} ${conditions.join(' AND ')}
          ORDER BY ${sorted} LIMIT ${use(limit === undefined ? null : limit + MAX_MORE + 1)}
      )
      SELECT *, (SELECT count(*)::integer FROM page) AS found FROM page
        ORDER BY ${sorted} LIMIT ${use(limit ?? null)}`,
    given,
  );
  if (rows.length === 0 && after !== undefined) {
    const known = await queries.query(`SELECT ${afterIt(`$${values.length + 1}`)}`, [
      ...values,
      after,
    ]);
    if (known.length === 0) throw unknownAfter(after);
  }
  const items = rows.map(({ found: _, ...row }) => row as unknown as Row);
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
