/** What every list takes and prints: some of it by a word, and page by page. */
import type { Command } from 'commander';
import type { Page, PageRequest } from '../../storage/pages.ts';
import { wholeNumber } from './given.ts';
import type { Operator } from './operator.ts';
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
  /** What is said of a list that is empty without a filter. */
  readonly nothing: string;
  /** Whether only some of the list was asked for. */
  readonly isFiltered?: boolean;
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

/** Whether an option leaves something out. @param filters those that only this list has. */
export const isFiltered = (
  { match, after }: ListOptions,
  ...filters: readonly unknown[]
): boolean => [match, after, ...filters].some((filter) => filter !== undefined);

/** As a registry is asked: people are shown some, programs are told all. */
export const pageAsked = (
  { match, limit, after }: ListOptions,
  { json }: Pick<Operator, 'json'>,
): PageRequest => ({ match, after, limit: limit ?? (json ? undefined : SHOWN) });

export function listReport<Item>(
  { items, more }: Page<Item>,
  { heading, row, value, nothing, isFiltered = false }: ListForm<Item>,
): Report {
  const rows = items.map(row);
  const text = table(heading, rows, isFiltered ? 'Nothing matches these options.' : nothing);
  const next = `\n\nThere are ${more} more: add --after ${rows.at(-1)?.[0]}`;
  return { value: items.map(value), text: more > 0 ? text + next : text };
}
