/** What a command has to say: a value for programs, and the same for people; of a list page by page. */
import type { Command } from 'commander';
import type { Page, PageRequest } from '../../storage/pages.ts';
import type { Registries } from '../registries.ts';
import { wholeNumber } from './given.ts';
import type { Operator, Report } from './operator.ts';

/** The exit code of a command that was refused or failed. */
export const REFUSED = 1;

/** What a terminal would obey, or not show. Some of what is recorded was sent by strangers. */
const printable = (cell: string): string => cell.replace(/\p{C}/gu, '\uFFFD');

/** Characters of a line that fits everywhere: what is longer is broken by the terminal, mid-column. */
export const WIDTH = 80;

/**
 * Rows under a heading, each column as wide as its longest cell; where that is too wide for a line,
 * each row by itself, with the heading of a cell in front of it.
 *
 * @param options `mayBeWide`: a page for reading along its lines, whose rows belong together.
 */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  nothing: string,
  { mayBeWide = false } = {},
): string {
  if (rows.length === 0) return nothing;
  const lines = [heading, ...rows].map((cells) => cells.map(printable));
  const widths = heading.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
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
  /** The first cell is the id, by which `--after` goes on. */
  readonly row: (item: Item) => readonly string[];
  readonly value: (item: Item) => object;
  /** What is said of a list that is empty without a filter. */
  readonly nothing: string;
  /** Options of this list alone that leave something out; absent for one that says `nothing` anyway. */
  readonly filters?: readonly string[];
}

/** Rows that people are shown unasked; programs are told all. */
const SHOWN = 100;

export const listed = (command: Command): Command =>
  command
    .option('--match <text>', 'only what has this text in one of its columns, in any letter case')
    .option(
      '--limit <number>',
      `at most so many; without it people are shown ${SHOWN}, and --json prints all`,
      wholeNumber(Number.MAX_SAFE_INTEGER),
    )
    .option('--after <id>', 'what comes after the one of this ID: the next page');

/** Adds the command that lists what the noun stands for. */
export const addList = <Item, Options extends object>(
  noun: Command,
  operator: Operator,
  form: ListForm<Item>,
  find: (registries: Registries, page: PageRequest, options: Options) => Promise<Page<Item>>,
): Command =>
  listed(noun.command('list')).action((options: ListOptions & Options) =>
    operator.run(async (registries) => {
      const page = await find(registries, pageAsked(options, operator), options);
      return listReport(page, form, options);
    }),
  );

/** As a registry is asked: people are shown some, programs are told all. */
export const pageAsked = (
  { match, limit, after }: ListOptions,
  { json }: Pick<Operator, 'json'>,
): PageRequest => ({ match, after, limit: limit ?? (json ? undefined : SHOWN) });

export function listReport<Item>(
  { items, more }: Page<Item>,
  { heading, row, value, nothing, filters }: ListForm<Item>,
  options: object,
): Report {
  const isFiltered = Object.entries(options).some(
    ([name, value]) => value !== undefined && filters?.concat('match', 'after').includes(name),
  );
  const rows = items.map(row);
  const text = table(heading, rows, isFiltered ? 'Nothing matches these options.' : nothing);
  const next = `\n\nThere are ${more} more: add --after ${rows.at(-1)?.[0]}`;
  return { value: items.map(value), text: more > 0 ? text + next : text };
}
