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

/** Rows under a heading, each column as wide as its longest cell. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  nothing: string,
): string {
  if (rows.length === 0) return nothing;
  const lines = [heading, ...rows].map((cells) => cells.map(printable));
  const widths = heading.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  return lines
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}
