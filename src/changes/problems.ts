/** Errors of an import: wrong lines, found before anything is written, and an interruption. */
import { Refusal } from '../base/refusal.ts';

export interface ImportProblem {
  /** The first line has number 1. */
  readonly line: number;
  /** Names the problem and the remedy. */
  readonly message: string;
}

/** Maximum number of listed problems. More would rarely help: a mistake in an export usually repeats in each line. */
const MAX_SHOWN = 100;

export class ImportProblems extends Error {
  readonly code = 'import_problems';
  readonly remedy = 'Nothing was changed. Correct the file, or the program that writes it, and import it again.';
  /** The first problems, in the order of the lines. */
  readonly problems: readonly ImportProblem[];
  /** The number of all problems, including those that are not listed. */
  readonly count: number;

  constructor(problems: readonly ImportProblem[], count: number) {
    super(`${count} problem(s) found in the file`);
    this.name = 'ImportProblems';
    this.problems = problems;
    this.count = count;
  }
}

export function createFoundProblems() {
  let found: ImportProblem[] = [];
  let count = 0;
  const first = (): ImportProblem[] => found.toSorted((a, b) => a.line - b.line).slice(0, MAX_SHOWN);
  return {
    add(line: number, message: string): void {
      count += 1;
      found.push({ line, message });
      if (found.length > 2 * MAX_SHOWN) found = first();
    },
    /** @throws ImportProblems if there are any. */
    refuse(): void {
      if (count > 0) throw new ImportProblems(first(), count);
    },
  };
}

export type FoundProblems = ReturnType<typeof createFoundProblems>;

/** Thrown if the import stopped between two batches. The earlier batches stay written. */
export class ImportInterrupted extends Refusal {
  /** @param kept how many changes of the import are in the database */
  constructor({ id, kept }: { readonly id: string; readonly kept: number }, reason: string, cause: unknown) {
    super(
      'import_interrupted',
      `The import ${id} stopped after ${kept} change(s), which are kept: ${reason}.`,
      'Remove the cause, then run the same command again: it continues where this import stopped.',
      { cause },
    );
  }
}
