/** The operator command as a process of its own, the way an operator runs it. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { COMPILE_CACHE } from '../support/programs.ts';
import type { TestService } from '../support/service.ts';

const MAIN = new URL('../../src/operator/main.ts', import.meta.url).pathname;

export interface Answer {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

export type RunOperator = (args: readonly string[], input?: string) => Promise<Answer>;

/** Runs the command with these variables and none of the test's own that it could notice. */
export function operatorWith(environment: Readonly<Record<string, string>>): RunOperator {
  return async (args, input = '') => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...COMPILE_CACHE, ...environment },
    });
    child.stdin.end(input);
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { exitCode: await ended, output, errors };
  };
}

/** The command of whoever runs this service: on its stores, with its keys unless others are given. */
export function operatorBeside(
  { settings: { storage, secrets } }: TestService,
  environment: Readonly<Record<string, string>> = {
    GATEHOUSE_COOKIE_KEYS: secrets.cookieKeys.join(),
    GATEHOUSE_TOKEN_KEYS: secrets.tokenKeys.join(),
  },
): RunOperator {
  const { databaseUrl, redisUrl, dataDirectory } = storage;
  return operatorWith({
    ...(databaseUrl === undefined
      ? { GATEHOUSE_DATA_DIR: dataDirectory }
      : { DATABASE_URL: databaseUrl }),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...environment,
  });
}

/** The one value that `--json` prints, of a command that ends with `exitCode`. */
export async function valueFrom(
  run: RunOperator,
  args: readonly string[],
  { input, exitCode = 0 }: { input?: string; exitCode?: number } = {},
) {
  const answer = await run([...args, '--json'], input);
  if (answer.exitCode !== exitCode) {
    throw new Error(`${args.join(' ')} ended with ${answer.exitCode}: ${JSON.stringify(answer)}`);
  }
  return JSON.parse(answer.output);
}
