/** What an import reads: a file that was taken apart, but not yet believed. */
import type { ImportKey, ImportLine, ImportType, LineOf } from './line.ts';

/** A line and its number in the file, the first one being 1. */
export type Numbered<Line extends ImportLine = ImportLine> = Line & { readonly number: number };

/** A line that breaks a rule by itself. */
export interface BrokenLine {
  readonly number: number;
  readonly problems: readonly string[];
  /** What the line is about, where that much can be understood. */
  readonly key?: ImportKey;
}

/** Read as often as needed, some lines at a time, so that nobody ever holds all of them. */
export interface ImportSource {
  /** Every line that is not blank. */
  lines(): AsyncIterable<readonly (Numbered | BrokenLine)[]>;
}

export const isBroken = (line: Numbered | BrokenLine): line is BrokenLine => 'problems' in line;

/** The lines of one type in the order of the file, `size` at a time. */
export async function* batchesOf<Type extends ImportType>(
  source: ImportSource,
  type: Type,
  size: number,
): AsyncIterable<readonly Numbered<LineOf<Type>>[]> {
  const isOfType = (line: Numbered | BrokenLine): line is Numbered<LineOf<Type>> =>
    !isBroken(line) && line.type === type;
  let batch: Numbered<LineOf<Type>>[] = [];
  for await (const lines of source.lines()) {
    for (const line of lines) {
      if (!isOfType(line)) continue;
      batch.push(line);
      if (batch.length < size) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
