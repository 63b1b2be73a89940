/** A list of anything: searched, filtered, ordered, and cut into pages that begin after an entry. */
import type { ParsedUrlQuery } from 'node:querystring';

/** Entries of one page. */
export const PAGE = 25;
/** With fewer, everything is seen at once. */
const MANY = 10;
/** Characters of a search, or of the name that a page begins after. */
const LONGEST = 250;

/** What a list is of, and how it may be looked at. */
export interface ListForm<Row> {
  /** Of the page, without a query. */
  readonly path: string;
  /** Parameters that the page itself needs: its links and its form keep them. */
  readonly kept?: Readonly<Record<string, string>>;
  idOf(row: Row): string;
  /** What is searched. */
  textOf(row: Row): string;
  /** The first is the usual one. */
  readonly orders: readonly [ListOrder<Row>, ...ListOrder<Row>[]];
  readonly filters?: readonly ListFilter<Row>[];
}

/** Made by `byText`, `byTime` and `byNumber`. */
export interface ListOrder<Row> {
  /** In the address. */
  readonly name: string;
  readonly label: string;
  /** As it stands in the address of a next page. */
  keyOf(row: Row): string;
  compare(a: string, b: string): number;
}

export interface ListFilter<Row> {
  readonly name: string;
  readonly label: string;
  has(row: Row): boolean;
}

/** What `partials/list-tools`, `list-found` and `list-pages` print. */
export interface ListView extends ListTools {
  readonly total: number;
  readonly found: number;
  /** Without search and filter. */
  readonly allUrl: string;
  /** Absent on the last page. */
  readonly nextUrl: string | undefined;
  /** Absent on the first page. */
  readonly firstUrl: string | undefined;
}

/** What can be asked for. */
export interface ListTools {
  readonly action: string;
  readonly kept: readonly { readonly name: string; readonly value: string }[];
  readonly search: string;
  /** None where there is one only. */
  readonly orders: readonly ListChoice[];
  /** Empty where nothing can be filtered. */
  readonly filters: readonly ListChoice[];
  /** Whether there is so much that it is worth looking for. */
  readonly hasTools: boolean;
}

export interface ListChoice {
  readonly value: string;
  readonly label: string;
  readonly isChosen: boolean;
}

const collator = new Intl.Collator('en', { numeric: true });

/** From A to Z. */
export const byText = <Row>(
  name: string,
  label: string,
  keyOf: (row: Row) => string,
): ListOrder<Row> => ({ name, label, keyOf, compare: collator.compare });

/** The latest first; what has no time comes last. */
export const byTime = <Row>(
  name: string,
  label: string,
  timeOf: (row: Row) => Date | null | undefined,
): ListOrder<Row> => ({
  name,
  label,
  keyOf: (row) => timeOf(row)?.toISOString() ?? '',
  compare: (a, b) => (a === b ? 0 : a > b ? -1 : 1),
});

/** The part of `rows` that the query of a request asks for. What it cannot mean is left out. */
export function listOf<Row>(
  rows: readonly Row[],
  query: ParsedUrlQuery,
  form: ListForm<Row>,
): { readonly rows: readonly Row[]; readonly list: ListView } {
  const asked = (name: string): string => String(query[name] ?? '').slice(0, LONGEST);
  const { path, orders, filters = [], kept = {} } = form;
  const search = asked('q').trim();
  const order = orders.find(({ name }) => name === asked('order')) ?? orders[0];
  const filter = filters.find(({ name }) => name === asked('only'));

  const placeOf = (row: Row): Place => ({ key: order.keyOf(row), id: form.idOf(row) });
  const compare = (a: Place, b: Place): number =>
    order.compare(a.key, b.key) || (a.id === b.id ? 0 : a.id < b.id ? -1 : 1);
  const words = folded(search).split(/\s+/);
  const found = rows
    .filter((row) => !filter || filter.has(row))
    .filter((row) => search === '' || hasAll(folded(form.textOf(row)), words))
    .map((row) => ({ row, ...placeOf(row) }))
    .sort(compare);

  const after: Place = { key: asked('key'), id: asked('after') };
  const rest = after.id === '' ? found : found.filter((one) => compare(one, after) > 0);
  const shown = rest.slice(0, PAGE);
  const last = rest.length > PAGE ? shown.at(-1) : undefined;
  const chosen = {
    ...kept,
    ...(search !== '' && { q: search }),
    ...(order !== orders[0] && { order: order.name }),
    ...(filter && { only: filter.name }),
  };
  const urlWith = (parameters: Readonly<Record<string, string>>): string => {
    const query = new URLSearchParams(parameters);
    return query.size === 0 ? path : `${path}?${query}`;
  };
  const everything = { name: '', label: 'All' };
  return {
    rows: shown.map(({ row }) => row),
    list: {
      action: path,
      kept: Object.entries(kept).map(([name, value]) => ({ name, value })),
      search,
      orders: orders.map((one) => choiceOf(one, one === order)),
      filters: (filters.length > 0 ? [everything, ...filters] : []).map((one) =>
        choiceOf(one, one.name === (filter?.name ?? '')),
      ),
      total: rows.length,
      found: found.length,
      allUrl: urlWith(kept),
      nextUrl: last && urlWith({ ...chosen, after: last.id, key: last.key }),
      firstUrl: after.id === '' ? undefined : urlWith(chosen),
      hasTools: rows.length > MANY,
    },
  };
}

/** Where an entry stands in the order. */
interface Place {
  readonly key: string;
  readonly id: string;
}

/** Without case and accents, `ß` as `ss`: who searches types neither. */
const folded = (text: string): string =>
  text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase();

const hasAll = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.includes(word));

const choiceOf = (
  { name, label }: { readonly name: string; readonly label: string },
  isChosen: boolean,
): ListChoice => ({ value: name, label, isChosen });
