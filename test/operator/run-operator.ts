/** Runs the operator command in this process, or as a program of its own. */
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Settings } from '../../src/config/settings.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { expectExplained } from '../clients/refusals.ts';
import { fileWith } from '../config/configuration.ts';
import { COMPILE_CACHE } from '../support/programs.ts';
import type { TestService } from '../support/service.ts';
import { PATIENCE_MS } from '../support/timeout-factor.ts';

export const OPERATOR_PROGRAM = new URL('../../src/operator/main.ts', import.meta.url).pathname;

export interface Answer {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** The arguments of a command, as a list or in one line separated by spaces. */
export type Words = string | readonly string[];

export type RunOperator = (words: Words, input?: string) => Promise<Answer>;

export type Environment = Readonly<Record<string, string>>;

/** Has the effect of config/gatehouse.yaml, which takes most of the time of a command to read. */
const DEFAULTS = fileWith('{}', 'defaults.yaml');

/** Milliseconds for which the doctor watches the stream: time for two heartbeats. */
const STREAM_WATCH = { watched: 500, limit: PATIENCE_MS };

/**
 * Runs the command in this process, with these variables instead of the environment of the tests.
 *
 * @param runCommand the command of another version.
 * @param streamWatch how long the doctor watches the stream of changes.
 */
export function operatorWith(
  environment: Environment,
  runCommand = runOperator,
  streamWatch = STREAM_WATCH,
): RunOperator {
  return async (words, input = '') => {
    const [stdout, stderr] = [createPage(), createPage()];
    const exitCode = await runCommand(listOf(words), {
      // The systemd of this machine is not under test.
      environment: { PATH: '/nonexistent', GATEHOUSE_CONFIG: DEFAULTS, ...environment },
      stdin: Readable.from([input]),
      stdout,
      stderr,
      onInterrupt: () => {},
      streamWatch,
    });
    return { exitCode, output: stdout.text(), errors: stderr.text() };
  };
}

/**
 * Starts the program as an operator does, which takes a second of CPU time. For tests of what only
 * a process has, such as its exit code, its standard input, its memory and the CA files that it
 * trusts.
 */
export function operatorProgramWith(environment: Environment): RunOperator {
  return async (words, input = '') => {
    const child = spawn(process.execPath, [OPERATOR_PROGRAM, ...listOf(words)], {
      env: { ...COMPILE_CACHE, ...environment },
    });
    child.stdin.end(input);
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { exitCode: await ended, output, errors };
  };
}

/** Returns the operator command for the address and the stores of this service, and for its keys or the given variables. */
export const operatorFor = (service: TestService, more?: Environment): RunOperator =>
  operatorWith(variablesAt(service, more));

export const variablesAt = (service: TestService, more = keysOf(service)): Environment => ({
  GATEHOUSE_ISSUER: service.issuer,
  GATEHOUSE_OPERATORS_PORT: new URL(service.operatorsUrl).port,
  ...storesOf(service),
  ...more,
});

export const operatorOn = (database: OpenDatabase): RunOperator => operatorWith(variablesOf(database));

export function variablesOf({ connection }: OpenDatabase): Environment {
  const { connectionString, host } = connection;
  return connectionString === undefined ? { GATEHOUSE_DATA_DIR: `${host}` } : { DATABASE_URL: connectionString };
}

export function storesOf({ settings: { storage } }: TestService): Environment {
  const { databaseUrl, redisUrl, dataDirectory } = storage;
  return {
    ...(databaseUrl === undefined ? { GATEHOUSE_DATA_DIR: dataDirectory } : { DATABASE_URL: databaseUrl }),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  };
}

export const keysOf = ({ settings: { secrets } }: { readonly settings: Pick<Settings, 'secrets'> }): Environment => ({
  GATEHOUSE_COOKIE_KEYS: secrets.cookieKeys.join(),
  GATEHOUSE_TOKEN_KEYS: secrets.tokenKeys.join(),
});

/** Returns the value that `--json` prints. @throws if the exit code is not `exitCode` */
export async function valueFrom(
  run: RunOperator,
  words: Words,
  { input, exitCode = 0 }: { input?: string | undefined; exitCode?: number } = {},
) {
  const answer = await run([...listOf(words), '--json'], input);
  if (answer.exitCode !== exitCode) {
    throw new Error(`${words} ended with ${answer.exitCode}: ${JSON.stringify(answer)}`);
  }
  return JSON.parse(answer.output);
}

/** Returns the refusal of a command that must exit with 1. */
export async function refusalFrom(run: RunOperator, words: Words, input?: string) {
  const { error } = await valueFrom(run, words, { input, exitCode: 1 });
  expectExplained(error);
  return error;
}

/** Expects that each of these command lines exits with 2, before any store is opened. */
export async function expectWrongUsage(run: RunOperator, lines: readonly Words[]): Promise<void> {
  for (const words of lines) {
    const { exitCode, output, errors } = await run([...listOf(words), '--json']);
    expect({ exitCode, errors }, `${words}`).to.deep.equal({ exitCode: 2, errors: '' });
    expect(JSON.parse(output).error.code, `${words}`).to.equal('wrong_usage');
  }
}

const listOf = (words: Words): readonly string[] =>
  typeof words === 'string' ? words.split(' ').filter(Boolean) : words;

/** Creates a stream that keeps what is written to it. @param onText called with each piece */
export function createPage(onText: (text: string) => void = () => {}) {
  let written = '';
  const page = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      written += chunk;
      onText(chunk);
      done();
    },
  });
  return Object.assign(page, { text: () => written });
}
