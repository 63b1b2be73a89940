/** What a command has to say: a value for programs, and the same for people. */

export interface Report {
  /** Printed as one line of JSON with `--json`. */
  readonly value: unknown;
  /** Printed otherwise. */
  readonly text: string;
  /** What the command ends with, in place of 0. */
  readonly exitCode?: number;
}

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
