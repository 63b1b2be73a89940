/** Searches, filters and sorts a list, and splits it into pages. A page begins after a given entry. */
import type { ParsedUrlQuery } from 'node:querystring';
import { message, type Text } from '../base/message.ts';

const PAGE_SIZE = 25;
/** Lists up to this length have no search and no filters. */
const MAX_WITHOUT_TOOLS = 10;
/** Maximum length of each parameter, such as the search. */
const MAX_PARAMETER_LENGTH = 250;

/** Describes a list: its page, searched text, orders and filters. */
export interface ListForm<Row> {
  /** The path of the page, without a query. */
  readonly path: string;
  /** Query parameters of the page itself, which the list's links and form keep. */
  readonly kept?: Readonly<Record<string, string>>;
  idOf(row: Row): string;
  /** Returns the text of a row in which a search looks. */
  textOf(row: Row): string;
  /** Sort orders; the first one is the default. */
  readonly orders: readonly [ListOrder<Row>, ...ListOrder<Row>[]];
  readonly filters?: readonly ListFilter<Row>[];
}

/** An order of the rows. Create it with `byText` or `byTime`. */
export interface ListOrder<Row> {
  /** The value in the URL. */
  readonly name: string;
  readonly label: Text;
  /** Returns the sort key, which is also part of the URL of the next page. */
  keyOf(row: Row): string;
  compare(a: string, b: string): number;
}

export interface ListFilter<Row> {
  readonly name: string;
  readonly label: Text;
  has(row: Row): boolean;
}

/** The data that `partials/list-tools` and `list-pages` print. */
export interface ListView extends ListTools {
  readonly total: number;
  readonly found: number;
  /** The URL of the list without search and filter. */
  readonly allUrl: string;
  /** Which rows the page shows, counted from 1; undefined if the page shows all rows, or the rows were not counted. */
  readonly range?: { readonly first: number; readonly last: number } | undefined;
  /** Undefined on the last page. */
  readonly nextUrl: string | undefined;
  /** Undefined on the first page, and for a list that is read in steps, because that can be read only forward. */
  readonly previousUrl?: string | undefined;
  /** Undefined on the first page, and on the second one if it has `previousUrl`. */
  readonly firstUrl: string | undefined;
}

/** The search field, the sort orders and the filters of a list. */
export interface ListTools {
  readonly action: string;
  readonly kept: readonly { readonly name: string; readonly value: string }[];
  readonly search: string;
  /** The view offers orders to sort by only if there is more than one. */
  readonly orders: readonly ListChoice[];
  /** Empty if the list has no filters. */
  readonly filters: readonly ListChoice[];
  /** True if the list is long enough to need a search. */
  readonly hasTools: boolean;
}

export interface ListChoice {
  readonly value: string;
  readonly label: Text;
  readonly isChosen: boolean;
}

export const collator = new Intl.Collator('en', { numeric: true });

/** Sorts from A to Z. */
export const byText = <Row>(name: string, label: Text, keyOf: (row: Row) => string): ListOrder<Row> => ({
  name,
  label,
  keyOf,
  compare: collator.compare,
});

/** Sorts the latest first; rows without a time come last. */
export const byTime = <Row>(
  name: string,
  label: Text,
  timeOf: (row: Row) => Date | null | undefined,
): ListOrder<Row> => ({
  name,
  label,
  keyOf: (row) => timeOf(row)?.toISOString() ?? '',
  compare: (a, b) => (a === b ? 0 : a > b ? -1 : 1),
});

/** The usual orders for things that a user has: by name, newest first, and last used first. */
export const usualOrders = <Row extends { readonly name: string; readonly lastUsedAt?: Date | null | undefined }>(
  beganAt: (row: Row) => Date,
): ListForm<Row>['orders'] => [
  byText('name', message('lists.name'), ({ name }) => name),
  byTime('newest', message('lists.newest'), beganAt),
  byTime('used', message('lists.last-used'), ({ lastUsedAt }) => lastUsedAt),
];

/** Returns the page of `rows` that the query of a request selects. Ignores invalid parameters. */
export function listOf<Row>(rows: readonly Row[], query: ParsedUrlQuery, form: ListForm<Row>): ListPage<Row> {
  const { asked, order, chosen, matches, urlWith, tools } = askedOf(query, form);
  const placeOf = (row: Row): Place => ({ key: order.keyOf(row), id: form.idOf(row) });
  const compare = (a: Place, b: Place): number =>
    order.compare(a.key, b.key) || (a.id === b.id ? 0 : a.id < b.id ? -1 : 1);
  const found = rows
    .filter(matches)
    .map((row) => ({ row, ...placeOf(row) }))
    .sort(compare);

  const after: Place = { key: asked('key'), id: asked('after') };
  const rest = after.id === '' ? found : found.filter((one) => compare(one, after) > 0);
  const shown = rest.slice(0, PAGE_SIZE);
  const last = rest.length > PAGE_SIZE ? shown.at(-1) : undefined;
  const before = found.length - rest.length;
  const pageAfter = (place: Place | undefined): string =>
    urlWith(place ? { ...chosen, after: place.id, key: place.key } : chosen);
  return {
    rows: shown.map(({ row }) => row),
    isMore: false,
    list: {
      ...tools,
      total: rows.length,
      found: found.length,
      range: shown.length < found.length ? { first: before + 1, last: before + shown.length } : undefined,
      nextUrl: last && pageAfter(last),
      previousUrl: before > 0 ? pageAfter(found[before - PAGE_SIZE - 1]) : undefined,
      firstUrl: before > PAGE_SIZE ? urlWith(chosen) : undefined,
      hasTools: rows.length > MAX_WITHOUT_TOOLS,
    },
  };
}

/**
 * Like `listOf`, for a list that may be long. If one step reads the whole list, the user can sort it. A longer list
 * keeps the order of its steps: a search or filter reads step by step, until the page is full.
 *
 * @param maxSteps how many steps one page may read; the next page continues there
 */
export async function stepListOf<Row extends { readonly at: string }>(
  read: (from?: string) => Promise<{ readonly rows: readonly Row[]; readonly next?: string | undefined }>,
  query: ParsedUrlQuery,
  form: ListForm<Row>,
  maxSteps: number,
): Promise<ListPage<Row>> {
  const { asked, chosen, matches, urlWith, tools } = askedOf(query, form);
  const from = asked('from') || undefined;
  let step = await read(from);
  if (from === undefined && step.next === undefined) return listOf(step.rows, query, form);
  const found = step.rows.filter(matches);
  for (let steps = 1; found.length <= PAGE_SIZE && step.next && steps < maxSteps; steps += 1) {
    step = await read(step.next);
    found.push(...step.rows.filter(matches));
  }
  // End a page only between two values of `at`, because the next page begins after such a value.
  const beyond = found.findIndex(({ at }, one) => one >= PAGE_SIZE && at !== found[one - 1]?.at);
  const rows = beyond === -1 ? found : found.slice(0, beyond);
  const next = beyond === -1 ? step.next : rows.at(-1)?.at;
  const { order: _, ...kept } = chosen;
  return {
    rows,
    isMore: true,
    list: {
      ...tools,
      orders: [],
      total: found.length,
      found: found.length,
      nextUrl: next && urlWith({ ...kept, from: next }),
      firstUrl: from && urlWith(kept),
      hasTools: true,
    },
  };
}

/** Returns the path with these parameters, if there are any. */
export const urlWith = (path: string, parameters: Readonly<Record<string, string>>): string => {
  const query = new URLSearchParams(parameters);
  return query.size === 0 ? path : `${path}?${query}`;
};

interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** True if the list may have more rows than were counted. */
  readonly isMore: boolean;
  readonly list: ListView;
}

/** Reads the search, order and filter from a query. */
function askedOf<Row>(query: ParsedUrlQuery, { path, orders, filters = [], kept = {}, textOf }: ListForm<Row>) {
  const asked = (name: string): string => String(query[name] ?? '').slice(0, MAX_PARAMETER_LENGTH);
  const search = asked('q').trim();
  const words = normalized(search).split(/\s+/);
  const order = orders.find(({ name }) => name === asked('order')) ?? orders[0];
  const filter = filters.find(({ name }) => name === asked('only'));
  const everything = { name: '', label: message('lists.all') };
  const chosen: Readonly<Record<string, string>> = {
    ...kept,
    ...(search !== '' && { q: search }),
    ...(order !== orders[0] && { order: order.name }),
    ...(filter && { only: filter.name }),
  };
  return {
    asked,
    order,
    chosen,
    urlWith: (parameters: Readonly<Record<string, string>>): string => urlWith(path, parameters),
    matches: (row: Row): boolean =>
      (!filter || filter.has(row)) && (search === '' || hasAll(normalized(textOf(row)), words)),
    tools: {
      action: path,
      kept: Object.entries(kept).map(([name, value]) => ({ name, value })),
      search,
      orders: orders.map((one) => choiceOf(one, one === order)),
      filters: (filters.length > 0 ? [everything, ...filters] : []).map((one) =>
        choiceOf(one, one.name === (filter?.name ?? '')),
      ),
      allUrl: urlWith(path, kept),
    },
  };
}

/** The sort key and id of an entry after which a page starts. */
interface Place {
  readonly key: string;
  readonly id: string;
}

/** Ignores case and accents, and turns `ß` into `ss`, because users type searches without them. */
const normalized = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase();

/** True if a text contains all words of a search. */
export const containsText = (text: string, search: string): boolean =>
  hasAll(normalized(text), normalized(search).trim().split(/\s+/));

const hasAll = (text: string, words: readonly string[]): boolean => words.every((word) => text.includes(word));

/** Returns an option of a list's filters or orders. */
export const choiceOf = (
  { name: value, label }: { readonly name: string; readonly label: Text },
  isChosen: boolean,
): ListChoice => ({ value, label, isChosen });
