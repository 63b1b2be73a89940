/** Maps the error of a command to its exit code and to what is printed. */
import { CommanderError } from 'commander';
import { DataDirectoryRefused } from '../../base/data-directory.ts';
import type { Refusal } from '../../base/refusal.ts';
import { ImportProblems } from '../../changes/problems.ts';
import { NoDatabaseNamed } from '../../config/load.ts';
import { ConfigurationProblems } from '../../config/problems.ts';
import { NoDeployment } from '../../service/deployment.ts';
import { troubleOf } from '../../service/startup-errors.ts';
import { EmbeddedPostgresInUse } from '../../storage/embedded/postgres.ts';
import { UnsafeRedis } from '../../storage/open-token-store.ts';
import { WrongUsage } from '../command/arguments.ts';
import type { Report } from '../command/operator.ts';
import { REFUSED } from '../command/report.ts';
import { importProblemsReport } from '../import/printed-report.ts';

export type ExitCode = 1 | 2 | 3;

const WRONG_USAGE = 2;
const WRONG_CONFIGURATION = 3;

export interface Failure extends Report {
  readonly exitCode: ExitCode;
  /** The stack trace; present only if the failure is a bug in Gatehouse. */
  readonly stack?: string | undefined;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError || error instanceof WrongUsage) {
    const message = error.message.replace(/^error: /, '');
    return failure(WRONG_USAGE, {
      code: 'wrong_usage',
      message: message === '(outputHelp)' ? 'no command was given' : message,
      remedy: 'add --help to see the commands',
    });
  }
  if (error instanceof ConfigurationProblems) {
    const { code, problems, message } = error;
    const remedy = 'correct the settings and try again';
    return {
      exitCode: error instanceof NoDatabaseNamed ? WRONG_USAGE : WRONG_CONFIGURATION,
      value: { error: { code, message: `${problems.length} problem(s) found`, remedy, problems } },
      text: message,
    };
  }
  if (error instanceof NoDeployment) return failure(WRONG_USAGE, error);
  if (error instanceof ImportProblems) return { ...importProblemsReport(error), exitCode: REFUSED };
  for (const [known, remedy] of REMEDIES) {
    if (error instanceof known) return failure(REFUSED, { code: error.code, message: error.message, remedy });
  }
  const trouble = troubleOf(error);
  if (trouble) return failure(REFUSED, trouble);
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const remedy = 'This is a bug in Gatehouse: please report it with the stack shown.';
  return { ...failure(REFUSED, { code: 'failed', message, remedy }), stack };
}

const REMEDIES = [
  [EmbeddedPostgresInUse, 'wait until that process has finished, or check which process it is'],
  [DataDirectoryRefused, 'repair the directory before you start the service, which does not start on it either'],
  [UnsafeRedis, 'configure Redis as described: the service does not start with it either'],
] as const;

type Explained = Pick<Refusal, 'code' | 'message' | 'remedy'> & { readonly problems?: Refusal['problems'] };

function failure(exitCode: ExitCode, { code, message, remedy, problems: found = [] }: Explained): Failure {
  const problems = found.map(({ text: _, ...problem }) => problem);
  return {
    exitCode,
    value: { error: { code, message, remedy, ...(problems.length > 0 && { problems }) } },
    text: `${message}\n${remedy}`,
  };
}
