/** Runs one command line, from parsing its arguments to its exit code. */
import { once } from 'node:events';
import { userInfo } from 'node:os';
import { type Command, CommanderError } from 'commander';
import type { Variables } from '../../config/environment.ts';
import { loadForCommand } from '../../config/load.ts';
import { describeDeployment } from '../../service/deployment.ts';
import { requireConfirmation } from '../command/confirmation.ts';
import type { Operator, Report, Surroundings } from '../command/operator.ts';
import { withRegistries } from '../registries.ts';
import { failureOf } from './failure.ts';
import { createProgram, onlyReads, onlyStops } from './program.ts';
import { createProgress } from './progress.ts';

/**
 * Runs a command, prints its report or failure, and closes what the command opened.
 *
 * @param args the arguments after `gatehouse`
 * @returns the exit code, which the help of the program explains
 */
export async function runOperator(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  // Look for `--json` before commander parses the arguments, because its errors are printed as JSON, too.
  const json = args.includes('--json');
  const progress = createProgress(stderr);
  let exitCode = 0;
  let isArrayStarted = false;
  let command: Command | undefined;

  function print(report: Report): void {
    progress.clear();
    if (!json || report.value !== undefined) {
      stdout.write(`${json ? JSON.stringify(report.value) : report.text}\n`);
    }
    exitCode = report.exitCode ?? 0;
  }
  const operator: Operator = {
    ...surroundings,
    by: () => {
      const { reason } = program.opts<{ reason?: string }>();
      return { operator: operatorName(surroundings.environment), reason };
    },
    load: () =>
      loadForCommand({
        environment: surroundings.environment,
        mayUseDefaults: onlyReads(command) || onlyStops(command),
        report: operator.warn,
      }),
    warn(sentence) {
      progress.clear();
      stderr.write(`${sentence}\n`);
    },
    announce(settings) {
      if (onlyReads(command)) return;
      operator.warn(`Acting on ${describeDeployment(settings)}`);
    },
    onWait(session) {
      operator.warn(`A migration waits for ${session}. It is tried again until that session ends.`);
    },
    run: async (work) => print(await withRegistries(operator, onlyReads(command), work)),
    confirm: (what) => requireConfirmation(what, command?.opts() ?? {}, surroundings),
    print,
    json,
    progress,
    async printArray(pages) {
      // Stop reading pages if the output is closed, as `| head` does.
      const gone = new AbortController();
      stdout.once('error', () => gone.abort());
      let before = '[';
      for await (const page of pages) {
        if (gone.signal.aborted) return;
        isArrayStarted = true;
        const text = page.map((one) => JSON.stringify(one)).join(',');
        if (text !== '' && !stdout.write(before + text)) {
          await once(stdout, 'drain', { signal: gone.signal }).catch(() => {});
        }
        if (text !== '') before = ',';
      }
      stdout.write(before === '[' ? '[]\n' : ']\n');
    },
    say(line) {
      progress.clear();
      if (!json) stdout.write(`${line}\n`);
    },
  };

  const program = createProgram(operator, { json });
  program.hook('preAction', (_program, found) => {
    command = found;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError && error.exitCode === 0)) fail(error);
  }
  return exitCode;

  function fail(error: unknown): void {
    progress.clear();
    const failure = failureOf(error);
    exitCode = failure.exitCode;
    if (failure.stack) stderr.write(`${failure.stack}\n`);
    // Do not complete an array that was begun: no program must take the truncated array for the whole list.
    if (json && !isArrayStarted) print(failure);
    // Commander has already printed its own errors.
    else if (!(error instanceof CommanderError)) stderr.write(`${failure.text}\n`);
  }
}

/** Returns the operating system's user name, or both user names if the command runs with `sudo`. */
function operatorName({ SUDO_USER }: Variables): string {
  const name = nameOfProcess();
  return SUDO_USER && SUDO_USER !== name ? `${SUDO_USER} as ${name}` : name;
}

function nameOfProcess(): string {
  try {
    return userInfo().username;
  } catch {
    // Use the user ID, because the user in a container may have no name.
    return `uid ${process.getuid?.()}`;
  }
}
