/** Formats the reports of commands: tables, and lists page by page. */
import type { Command } from 'commander';
import { Refusal } from '../../base/refusal.ts';
import { countText, type Page, type PageRequest } from '../../storage/pages.ts';
import type { Registries } from '../registries.ts';
import { wholeNumber } from './arguments.ts';
import type { Operator, Report } from './operator.ts';

/** The exit code of a command that was refused or failed. */
export const REFUSED = 1;

/** Replaces control and invisible characters: recorded texts may come from attackers. */
export const printable = (cell: string): string => cell.replace(/\p{C}/gu, '\uFFFD');

/** The width that fits every terminal: longer lines would break within a column. */
export const WIDTH = 80;

/**
 * Returns rows under a heading, each column as wide as its longest cell. If a row is too wide for a line, returns each
 * row as a block of lines, with the heading before each cell.
 *
 * @param options `mayBeWide` always keeps each row on one line, so that rows can be compared
 */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  nothing: string,
  { mayBeWide = false } = {},
): string {
  if (rows.length === 0) return nothing;
  const lines = [heading, ...rows].map((cells) => cells.map(printable));
  const widths = heading.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const width = widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length);
  if (width > WIDTH && !mayBeWide) return records(lines);
  return lines
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP))
    .map((line) => line.trimEnd())
    .join('\n');
}

const GAP = '  ';

function records([heading = [], ...rows]: readonly (readonly string[])[]): string {
  const widest = Math.max(...heading.map((label) => label.length));
  const record = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => [heading[column] ?? '', cell.trim()] as const)
      .filter(([, cell]) => cell !== '')
      .map(([label, cell]) => `${label.padEnd(widest)}${GAP}${cell}`)
      .join('\n');
  return rows.map(record).join('\n\n');
}

export interface ListOptions {
  readonly match?: string;
  readonly limit?: number;
  readonly after?: string;
}

export interface ListForm<Item> {
  readonly heading: readonly string[];
  /** Returns the cells of a row; the first is the id that `--after` takes. */
  readonly row: (item: Item) => readonly string[];
  readonly value: (item: Item) => object;
  /** Printed if the list is empty without any filter. */
  readonly nothing: string;
  /** The options that name the owner of the entries, and do not count as filters. */
  readonly whose?: readonly string[];
}

/** Reports a short list without pages. */
export const itemsReport = <Item>(
  { heading, row, value, nothing }: ListForm<Item>,
  items: readonly Item[],
): Report => ({
  value: items.map(value),
  text: table(heading, items.map(row), nothing),
});

/** A time to the second, for a cell. */
export const toMoment = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;

/** The day of a time, for a cell. */
export const dayOf = (time: Date | null): string => time?.toISOString().slice(0, 10) ?? 'never';

/** Number of rows for people by default; programs get all rows. */
const DEFAULT_ROWS = 100;
/** Number of rows in memory at once, if all rows are printed for a program. */
const JSON_ROWS = 5_000;

export const listed = (command: Command): Command =>
  command
    .option('--match <text>', 'only rows with this text in one of their columns, ignoring case')
    .option(
      '--limit <number>',
      `maximum number of rows; default: ${DEFAULT_ROWS}, and all with --json`,
      wholeNumber(Number.MAX_SAFE_INTEGER),
    )
    .option('--after <id>', 'only rows after the one with this ID: the next page');

/** Adds a command that lists something to the noun; its verb is `list` by default. */
export const addList = <Item, Options extends object>(
  noun: Command,
  operator: Operator,
  form: ListForm<Item>,
  find: (registries: Registries, page: PageRequest, options: Options) => Promise<Page<Item>>,
  verb = 'list',
): Command =>
  listed(noun.command(verb)).action((options: ListOptions & Options) =>
    operator.run((registries) => listReport(operator, form, options, (page) => find(registries, page, options))),
  );

type FindPage<Item> = (page: PageRequest) => Promise<Page<Item>>;

/** Returns a page for people, or prints all entries for a program that sets no `--limit`. */
export async function listReport<Item>(
  { json, printArray }: Pick<Operator, 'json' | 'printArray'>,
  form: ListForm<Item>,
  options: ListOptions,
  find: FindPage<Item>,
): Promise<Report> {
  const { heading, row, value, nothing, whose = [] } = form;
  const { match, after, limit } = options;
  if (json && limit === undefined) {
    await printArray(pagesOf(form, { match, after }, find));
    return { value: undefined, text: '' };
  }
  const { items, more } = await find({ match, after, limit: limit ?? DEFAULT_ROWS });
  const filters = Object.entries(options).filter(([name, given]) => given !== undefined && !whose.includes(name));
  const isFiltered = filters.some(([name]) => name !== 'limit');
  const rows = items.map(row);
  const text = table(heading, rows, isFiltered ? 'Nothing matches these options.' : nothing);
  const next = `\n\nThere are ${countText(more)} more: add --after ${rows.at(-1)?.[0]}`;
  return { value: items.map(value), text: more > 0 ? text + next : text };
}

async function* pagesOf<Item>(
  { row, value }: ListForm<Item>,
  { match, after }: PageRequest,
  find: FindPage<Item>,
): AsyncIterable<object[]> {
  for (let ids = [after]; ; ) {
    const page = await find({ match, after: ids.pop(), limit: JSON_ROWS }).catch((error) => {
      // The last entry was removed meanwhile: continue after the one before it.
      const isRemoved = error instanceof Refusal && error.code === 'after_unknown';
      if (!isRemoved || ids.length === 0) throw error;
    });
    if (!page) continue;
    yield page.items.map(value);
    if (page.more === 0) return;
    ids = page.items.map((item) => row(item)[0]);
  }
}
