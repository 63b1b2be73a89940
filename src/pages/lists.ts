/** Searches, filters and sorts a list, and splits it into pages. A page's URL names the last entry before the page. */
import type { ParsedUrlQuery } from 'node:querystring';
import { collator } from '../accounts/access/reach.ts';
import { message, type Text } from '../base/message.ts';

const PAGE_SIZE = 25;
/** Lists of at most this length have no search and no filters. */
const MAX_WITHOUT_TOOLS = 10;
/** Maximum length of a query parameter. */
const MAX_PARAMETER_LENGTH = 250;

export interface ListForm<Row> {
  /** The path of the page, without a query. */
  readonly path: string;
  /** Query parameters that the links and the form of the list must repeat. */
  readonly kept?: Readonly<Record<string, string>>;
  idOf(row: Row): string;
  /** Returns the searchable text of a row. */
  textOf(row: Row): string;
  /** The first sort order is the default. */
  readonly orders: readonly [ListOrder<Row>, ...ListOrder<Row>[]];
  readonly filters?: readonly ListFilter<Row>[];
}

export interface ListOrder<Row> {
  /** The name of this sort order in the URL. */
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

/** The data of the views `partials/list-tools` and `partials/list-pages`. */
export interface ListView extends ListTools {
  readonly total: number;
  readonly found: number;
  /** The URL of the list without search and filter. */
  readonly allUrl: string;
  /** The rows on this page, counted from 1; undefined if the page shows all rows, or if the rows were not counted. */
  readonly range?: { readonly first: number; readonly last: number } | undefined;
  /** Undefined on the last page. */
  readonly nextUrl: string | undefined;
  /** Undefined on the first page, and for a list of `stepListOf`, which can be read only forward. */
  readonly previousUrl?: string | undefined;
  /** Undefined on page 1, and on page 2 if `previousUrl` already leads to page 1. */
  readonly firstUrl: string | undefined;
}

export interface ListTools {
  readonly action: string;
  readonly kept: readonly { readonly name: string; readonly value: string }[];
  readonly search: string;
  readonly orders: readonly ListChoice[];
  readonly filters: readonly ListChoice[];
  /** True if the list is so long that the page offers a search, sort orders and filters. */
  readonly hasTools: boolean;
}

export interface ListChoice {
  readonly value: string;
  readonly label: Text;
  readonly isChosen: boolean;
}

export const byText = <Row>(name: string, label: Text, keyOf: (row: Row) => string): ListOrder<Row> => ({
  name,
  label,
  keyOf,
  compare: collator.compare,
});

/** Sorts the latest time first, and rows without a time last. */
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

/** Returns three sort orders: by name, by creation (newest first) and by last use (latest first). */
export const usualOrders = <Row extends { readonly name: string; readonly lastUsedAt?: Date | null | undefined }>(
  beganAt: (row: Row) => Date,
): ListForm<Row>['orders'] => [
  byText('name', message('lists.name'), ({ name }) => name),
  byTime('newest', message('lists.newest'), beganAt),
  byTime('used', message('lists.last-used'), ({ lastUsedAt }) => lastUsedAt),
];

/** Returns the page that the query of a request selects. Invalid parameters are ignored. */
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
 * Like `listOf`, for a list that may be very long: reads the list step by step until a page is full. The user can sort
 * the list only if one step reads the whole list.
 *
 * @param maxSteps how many steps one request may read; the next page continues after them
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
  // Rows with the same `at` must be on the same page, because the next page begins after this value.
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

export const urlWith = (path: string, parameters: Readonly<Record<string, string>>): string => {
  const query = new URLSearchParams(parameters);
  return query.size === 0 ? path : `${path}?${query}`;
};

interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** True if there may be more rows than were counted. */
  readonly isMore: boolean;
  readonly list: ListView;
}

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

/** The sort key and the id of the entry after which a page begins. */
interface Place {
  readonly key: string;
  readonly id: string;
}

/** Removes case, accents and the difference of `ß` and `ss`, so that a search ignores them. */
const normalized = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase();

/** True if the text contains every word of the search. */
export const containsText = (text: string, search: string): boolean =>
  hasAll(normalized(text), normalized(search).trim().split(/\s+/));

const hasAll = (text: string, words: readonly string[]): boolean => words.every((word) => text.includes(word));

export const choiceOf = (
  { name: value, label }: { readonly name: string; readonly label: Text },
  isChosen: boolean,
): ListChoice => ({ value, label, isChosen });
