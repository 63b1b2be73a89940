/** Formats the reports of commands: tables, and lists page by page. */
import type { Command } from 'commander';
import { Refusal } from '../../base/refusal.ts';
import { countText, type Page, type PageRequest } from '../../storage/pages.ts';
import type { Registries } from '../registries.ts';
import { wholeNumber } from './arguments.ts';
import type { Operator, Report } from './operator.ts';

/** The exit code of a command that was refused or failed. */
export const REFUSED = 1;

/** Replaces control characters and invisible characters, which an attacker may have sent to mislead the operator. */
export const printable = (cell: string): string => cell.replace(/\p{C}/gu, '\uFFFD');

/** The usual width of a terminal, which would break longer lines within a column. */
export const WIDTH = 80;

/**
 * Returns a text table. If a row is wider than a line, each row becomes a block of lines, one for each cell.
 *
 * @param options `mayBeWide` keeps each row on one line, whatever its width
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
  /** The first cell must be the id that `--after` accepts. */
  readonly row: (item: Item) => readonly string[];
  readonly value: (item: Item) => object;
  /** The text for an empty list that no filter restricts. */
  readonly nothing: string;
  /** Names of options that are not filters, because they name the owner of the entries. */
  readonly whose?: readonly string[];
}

/** Returns a report that shows all items of a list, without pages. */
export const itemsReport = <Item>(
  { heading, row, value, nothing }: ListForm<Item>,
  items: readonly Item[],
): Report => ({
  value: items.map(value),
  text: table(heading, items.map(row), nothing),
});

export const toMoment = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;

export const dayOf = (time: Date | null): string => time?.toISOString().slice(0, 10) ?? 'never';

/** Number of rows by default; with `--json`, all rows are printed. */
const DEFAULT_ROWS = 100;
/** Number of rows in memory at once when `--json` prints all rows. */
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

/** Adds the command `list`. */
export const addList = <Item, Options extends object>(
  noun: Command,
  operator: Operator,
  form: ListForm<Item>,
  find: (registries: Registries, page: PageRequest, options: Options) => Promise<Page<Item>>,
): Command =>
  listed(noun.command('list')).action((options: ListOptions & Options) =>
    operator.run((registries) => listReport(operator, form, options, (page) => find(registries, page, options))),
  );

type FindPage<Item> = (page: PageRequest) => Promise<Page<Item>>;

/** Returns one page; with `--json` and without `--limit`, prints all entries and returns an empty report. */
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
      // If the last entry of the previous page was removed meanwhile, continue after the entry before it.
      const isRemoved = error instanceof Refusal && error.code === 'after_unknown';
      if (!isRemoved || ids.length === 0) throw error;
    });
    if (!page) continue;
    yield page.items.map(value);
    if (page.more === 0) return;
    ids = page.items.map((item) => row(item)[0]);
  }
}
