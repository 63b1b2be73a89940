/** The operator command: called in this process, or started as the program that it is. */
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runOperator } from '../../src/operator/run-operator.ts';
import { COMPILE_CACHE } from '../support/programs.ts';
import type { TestService } from '../support/service.ts';

export const OPERATOR_PROGRAM = new URL('../../src/operator/main.ts', import.meta.url).pathname;

export interface Answer {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

export type RunOperator = (args: readonly string[], input?: string) => Promise<Answer>;

type Environment = Readonly<Record<string, string>>;

/** Runs the command in this process, with these variables and none of the test's own. */
export function operatorWith(environment: Environment): RunOperator {
  return async (args, input = '') => {
    const [stdout, stderr] = [createPage(), createPage()];
    const exitCode = await runOperator(args, {
      ...{ environment, stdin: Readable.from([input]), stdout, stderr },
      onInterrupt: () => {},
    });
    return { exitCode, output: stdout.text(), errors: stderr.text() };
  };
}

/**
 * Starts the program as an operator does, in a second of a processor: for what only a process has,
 * such as its exit code, its standard input, its memory and the files it was told to trust.
 */
export function operatorProgramWith(environment: Environment): RunOperator {
  return async (args, input = '') => {
    const child = spawn(process.execPath, [OPERATOR_PROGRAM, ...args], {
      env: { ...COMPILE_CACHE, ...environment },
    });
    child.stdin.end(input);
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { exitCode: await ended, output, errors };
  };
}

/** The command of whoever runs this service: on its stores, with its keys unless others are given. */
export const operatorBeside = (service: TestService, keys?: Environment): RunOperator =>
  operatorWith({ ...storesOf(service), ...(keys ?? keysOf(service)) });

/** The variables that lead to the stores of this service. */
export function storesOf({ settings: { storage } }: TestService): Environment {
  const { databaseUrl, redisUrl, dataDirectory } = storage;
  return {
    ...(databaseUrl === undefined
      ? { GATEHOUSE_DATA_DIR: dataDirectory }
      : { DATABASE_URL: databaseUrl }),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  };
}

export const keysOf = ({ settings: { secrets } }: TestService): Environment => ({
  GATEHOUSE_COOKIE_KEYS: secrets.cookieKeys.join(),
  GATEHOUSE_TOKEN_KEYS: secrets.tokenKeys.join(),
});

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

/** Takes what is written, at once. */
function createPage() {
  let written = '';
  const page = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      written += chunk;
      done();
    },
  });
  return Object.assign(page, { text: () => written });
}
