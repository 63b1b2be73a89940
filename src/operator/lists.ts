/** What every list takes and prints: some of it by a word, and page by page. */
import { type Command, InvalidArgumentError } from 'commander';
import { Refusal } from '../refusal.ts';
import { type Report, table } from './report.ts';

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
  /** What is said of an empty list. */
  readonly nothing: string;
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

/** @throws Refusal `after_unknown` */
export function listReport<Item>(
  all: readonly Item[],
  { match, limit, after }: ListOptions,
  { heading, row, value, nothing }: ListForm<Item>,
): Report {
  const rows = all.map((item) => ({ item, cells: row(item) }));
  const start = after === undefined ? 0 : rows.findIndex(({ cells }) => cells[0] === after) + 1;
  if (after !== undefined && start === 0) {
    const remedy = 'Begin again without --after: it may have been removed meanwhile.';
    throw new Refusal('after_unknown', `${after} is not in this list.`, remedy);
  }
  const word = match?.toLowerCase() ?? '';
  const found = rows
    .slice(start)
    .filter(({ cells }) => cells.some((cell) => cell.toLowerCase().includes(word)));
  const shown = found.slice(0, limit ?? SHOWN);
  const more = found.length - shown.length;
  const text = table(
    heading,
    shown.map(({ cells }) => cells),
    nothing,
  );
  const next = `\n\nThere are ${more} more: add --after ${shown.at(-1)?.cells[0]}`;
  return {
    value: found.slice(0, limit).map(({ item }) => value(item)),
    text: more > 0 ? text + next : text,
  };
}

export const wholeNumber =
  (most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= 1 && value <= most) return value;
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`);
  };
