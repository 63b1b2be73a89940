/** Why a file cannot be imported: every wrong line, before anything was written. */

export interface ImportProblem {
  /** Of the file, the first one is 1. */
  readonly line: number;
  /** What is wrong with the line and what to do about it. */
  readonly message: string;
}

/** How many problems are told apart; a wrong export is wrong everywhere. */
const MOST_SHOWN = 100;

export class ImportProblems extends Error {
  readonly code = 'import_problems';
  readonly remedy =
    'Nothing was changed. Correct the file, or what writes it, and import it again.';
  /** The first ones, by line. */
  readonly problems: readonly ImportProblem[];
  /** How many there are, with those that are not shown. */
  readonly count: number;

  constructor(problems: readonly ImportProblem[], count: number) {
    super(`${count} problem(s) found in the file`);
    this.name = 'ImportProblems';
    this.problems = problems;
    this.count = count;
  }
}

/** Collects the problems of one look at the file. */
export function createFoundProblems() {
  const shown: ImportProblem[] = [];
  let count = 0;
  return {
    add(line: number, message: string): void {
      count += 1;
      if (shown.length < MOST_SHOWN) shown.push({ line, message });
    },
    /** @throws ImportProblems if there are any. */
    refuse(): void {
      if (count === 0) return;
      throw new ImportProblems(
        shown.sort((a, b) => a.line - b.line),
        count,
      );
    },
  };
}

export type FoundProblems = ReturnType<typeof createFoundProblems>;

export interface BrokenImport {
  readonly id: string;
  readonly kept: number;
}

/** Something came between two batches; what was written is good and stays. */
export class ImportInterrupted extends Error {
  readonly code = 'import_interrupted';
  readonly remedy =
    'Run the same command again when that is over: it goes on where this one ended.';

  /** @param broken which import, and how many of its changes are in the database. */
  constructor(broken: BrokenImport, reason: string, cause: unknown) {
    const { id, kept } = broken;
    super(`The import ${id} broke off after ${kept} change(s), which are kept: ${reason}.`, {
      cause,
    });
    this.name = 'ImportInterrupted';
  }
}
