/** The problems of a configuration. All are reported at once, each with its remedy. */

export interface ConfigurationProblem {
  /** The place of the problem: `tokens.retry_window`, `server.port (from PORT)` or the path of a file, for example. */
  readonly path: string;
  /** The settings file with the line; absent if the problem is not in that file. */
  readonly file?: string;
  readonly line?: number;
  /** Absent if there is no value, or if the value may be a secret. */
  readonly value?: string;
  /** The problem as the end of a sentence, such as "is not a duration". */
  readonly message: string;
  /** What the operator should do, for example which value to write. */
  readonly remedy: string;
}

/** Thrown before anything is opened. The message is the list of problems for the operator. */
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
    problems.length === 1 ? 'The configuration has a problem:' : `The configuration has ${problems.length} problems:`;
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

/** Returns the problem and the remedy for an unreadable file that a variable or a setting names. */
export function unreadableFile(error: unknown): { message: string; remedy: string } {
  const { code } = error as NodeJS.ErrnoException;
  return {
    message: `names a file that cannot be read (${code})`,
    remedy:
      code === 'EACCES'
        ? 'make it readable for the user of the service: for the systemd unit, `chown ' +
          'root:gatehouse` and `chmod 640`, in a folder that this user may enter'
        : 'name a file that exists and that this process may read',
  };
}
