/** The problems of a configuration, reported all at once, each with its remedy. */

export interface ConfigurationProblem {
  /** Where: `tokens.retry_window`, `server.port (from PORT)`, `GATEHOUSE_COOKIE_KEYS`, a file. */
  readonly path: string;
  /** The settings file and the line in it; absent if the problem is not in the file. */
  readonly file?: string;
  readonly line?: number;
  /** The present value as text; absent if there is none, or if it might be a secret. */
  readonly value?: string;
  /** The problem as the rest of a sentence: "is not a duration". */
  readonly message: string;
  /** What to write or do instead. */
  readonly remedy: string;
}

/** Thrown before anything is opened; its message is the printable list. */
export class ConfigurationProblems extends Error {
  readonly code = 'configuration_problems';
  readonly problems: readonly ConfigurationProblem[];

  constructor(problems: readonly ConfigurationProblem[]) {
    super(printable(problems));
    this.name = 'ConfigurationProblems';
    this.problems = problems;
  }
}

function printable(problems: readonly ConfigurationProblem[]): string {
  const heading =
    problems.length === 1
      ? 'The configuration has a problem:'
      : `The configuration has ${problems.length} problems:`;
  return [heading, ...problems.map(printableProblem)].join('\n\n');
}

function printableProblem(problem: ConfigurationProblem): string {
  const { path, file, line, value, message, remedy } = problem;
  const lines = [`  ${path}`];
  if (file !== undefined) lines.push(`    place:   ${file}, line ${line}`);
  if (value !== undefined) lines.push(`    value:   ${value}`);
  lines.push(`    problem: ${message}`, `    remedy:  ${remedy}`);
  return lines.join('\n');
}

/** Message and remedy for a file that a variable or a setting names and that cannot be read. */
export function unreadableFile(error: unknown): { message: string; remedy: string } {
  const { code } = error as NodeJS.ErrnoException;
  return {
    message: `names a file that cannot be read (${code})`,
    remedy:
      code === 'EACCES'
        ? 'let the user of the service read it: for the unit, `chown root:gatehouse` and `chmod 640`, in a folder that it may enter'
        : 'name a file that exists and that this process may read',
  };
}
