/** Reads lists in pages. The database filters the items, and counts the items that follow the page. */
import { Refusal } from '../base/refusal.ts';
import type { Queries } from './queries.ts';

export interface PageRequest {
  /** If present, the page has only items with this text in a cell, in any letter case. */
  readonly match?: string | undefined;
  /** If present, the page begins after the item with this id. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** How many items follow this page. `MAX_MORE + 1` means more than `MAX_MORE`. */
  readonly more: number;
}

/** At most this many items after a page are counted, because the database must read each counted item. */
export const MAX_MORE = 1_000;

/** How many items one statement compares with a filter. Lists can be very long, but each statement has a timeout. */
const SCANNED = 2_000;

/** Returns the number as text, or `more than <max>` if the number is larger than `max`. */
export const countText = (count: number, max = MAX_MORE): string =>
  count > max ? `more than ${max.toLocaleString('en')}` : `${count}`;

interface ListQuery {
  /** A SELECT with named columns, one of which is `id`. Its conditions must have an index. */
  readonly select: string;
  /** Expressions to sort by. The last one must be unique, and none may be null. A long list needs an index on these. */
  readonly order: readonly string[];
  readonly isDescending?: boolean;
  /** The text expressions in which `match` is searched. */
  readonly cells: readonly string[];
  readonly values?: readonly unknown[];
  /**
   * Conditions without an index, on the columns of row `a`. `$` stands for the value. An undefined value means no
   * condition.
   */
  readonly filters?: readonly (readonly [condition: string, value: unknown])[];
  /** SQL that is true for the item with the given id. Set this if no index has the column `id` of the rows. */
  readonly hasId?: (parameter: string) => string;
}

/** Compares letters in the same way in every locale of the database. */
const ANY_LOCALE = 'COLLATE "und-x-icu"';

/** Sorts numbers in names by value: `a 9` comes before `a 10`. */
export const byName = (column: string): string =>
  `regexp_replace(regexp_replace(${column}, '(\\d+)', '0000000000\\1', 'g'), '0*(\\d{10})', '\\1', 'g')
    ${ANY_LOCALE}`;

/**
 * Reads a filtered list in several statements, until enough items match.
 * @throws Refusal `after_unknown`
 */
export async function pageOf<Row extends object>(
  queries: Queries,
  { select, order, isDescending, cells, values = [], filters = [], hasId = isId }: ListQuery,
  { match, after, limit }: PageRequest,
): Promise<Page<Row>> {
  const keys = order.join(', ');
  const sortedBy = (direction: string): string => order.map((key) => key + direction).join(', ');
  const [sorted, reversed] = isDescending ? [sortedBy(' DESC'), sortedBy('')] : [sortedBy(''), sortedBy(' DESC')];
  const text = `lower(concat_ws(E'\\n', ${cells.join(', ')}) ${ANY_LOCALE})`;
  const search = [`strpos(${text}, lower($::text ${ANY_LOCALE})) > 0`, match] as const;
  const used = [search, ...filters].filter(([, value]) => value !== undefined);
  const most = limit === undefined ? null : limit + MAX_MORE + 1;
  const items: Row[] = [];
  let more = 0;
  for (let reached: readonly string[] | undefined; ; ) {
    const given = [...values];
    const use = (value: unknown): string => `$${given.push(value)}`;
    const conditions = used.map(([condition, value]) => condition.replaceAll('$', use(value)));
    const start = reached
      ? `(${reached.map(use).join(', ')})`
      : after !== undefined && `(SELECT ${keys} FROM (${select}) AS it WHERE ${hasId(use(after))})`;
    const left = limit === undefined ? null : limit - items.length;
    const shown = `ORDER BY ${sorted} LIMIT ${use(left)}`;
    const isFiltered = used.length > 0;
    const rows = await queries.query<Row & Step>(
      `WITH scanned AS (
          SELECT * FROM (${select}) AS it ${start ? `WHERE (${keys}) ${isDescending ? '<' : '>'} ${start}` : ''}
            ORDER BY ${sorted} LIMIT ${use(isFiltered ? SCANNED : most)}
        ), matching AS (SELECT * FROM scanned AS a WHERE ${['true', ...conditions].join(' AND ')})
        ${
          isFiltered
            ? `SELECT * FROM (
                SELECT (SELECT count(*)::integer FROM scanned) AS scanned,
                  (SELECT count(*)::integer FROM matching) AS found,
                  (SELECT ARRAY[${order.map((key) => `(${key})::text`).join(', ')}]
                    FROM scanned ORDER BY ${reversed} LIMIT 1) AS reached
              ) AS step LEFT JOIN (SELECT *, true AS matches FROM matching ${shown}) AS shown ON true
              ORDER BY ${sorted}`
            : `SELECT *, true AS matches, (SELECT count(*)::integer FROM scanned) AS found,
                NULL AS scanned, NULL AS reached FROM scanned ${shown}`
        }`,
      given,
    );
    const [step] = rows;
    if (start && !reached && !step?.scanned && !step?.found) {
      const known = await queries.query(`SELECT FROM (${select}) AS it WHERE ${hasId(`$${values.length + 1}`)}`, [
        ...values,
        after,
      ]);
      if (known.length === 0) throw unknownAfter(String(after));
    }
    const matches = rows.filter((row) => row.matches);
    for (const { matches: _, reached: __, scanned: ___, found: ____, ...row } of matches)
      items.push(row as unknown as Row);
    more += (step?.found ?? 0) - matches.length;
    if (more > MAX_MORE || !isFiltered || (step?.scanned ?? 0) < SCANNED) break;
    reached = step?.reached;
  }
  return { items, more: Math.min(more, MAX_MORE + 1) };
}

/** Each row repeats the columns about the whole step. If no item matches, the only row has null in `matches`. */
interface Step {
  readonly matches: true | null;
  /** The sort keys of the last item that was compared. */
  readonly reached: readonly string[];
  readonly scanned: number;
  readonly found: number;
}

const isId = (parameter: string): string => `id = ${parameter}`;

function unknownAfter(after: string): Refusal {
  const remedy = 'Start again without --after: the entry may have been removed meanwhile.';
  return new Refusal('after_unknown', `${after} is not in this list.`, remedy);
}

export const mapPage = <From, To>({ items, more }: Page<From>, to: (item: From) => To): Page<To> => ({
  items: items.map(to),
  more,
});
