/** Runs `npm run sandbox` as a newcomer does, and reads what it prints. */
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const ROOT = path.join(import.meta.dirname, '../..');

export interface RunningSandbox {
  readonly partner: string;
  readonly issuer: string;
  readonly apiUrl: string;
  readonly signIn: { readonly email: string; readonly password: string };
  /** Everything that was printed until all had started. */
  readonly output: string;
  /** The command lines that the sandbox prints for users to copy. */
  readonly commands: readonly string[];
  /** Runs one of these commands in a shell, in the folder of the project. @returns its output */
  run(command: string | undefined): Promise<string>;
  /** Sends a signal to npm, which passes it on. @returns the exit code of npm */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/**
 * @param environment variables in addition to those of this process
 * @param lookOf the settings file from which the sandbox takes the brand
 */
export async function runSandbox(environment: Record<string, string>, lookOf: string): Promise<RunningSandbox> {
  const { prints, end } = spawnSandbox(environment, lookOf);
  // Wait for the last line, which mentions Ctrl-C and is printed when everything has started.
  const output = await prints('Ctrl-C');

  const found = (pattern: RegExp): string => {
    const [, match] = pattern.exec(output) ?? [];
    if (match === undefined) throw new Error(`no ${pattern} in ${output}`);
    return match;
  };
  return {
    output,
    partner: found(/Partner app +(\S+)/),
    issuer: found(/Gatehouse +(http\S+)/),
    apiUrl: found(/Warehouse API +(\S+)/),
    signIn: { email: found(/sign in as (\S+),/), password: found(/password (\S+)/) },
    // A line that ends in a backslash or a pipe continues in the next one.
    commands: output.match(/^ {3}(?:[A-Z_]+=|curl )(?:.*[\\|]\n)*.*$/gm) ?? [],

    async run(command = '') {
      const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: ROOT });
      return stdout;
    },

    end,
  };
}

/** Starts the command, without waiting until it is ready. */
export function spawnSandbox(environment: Record<string, string>, ...lookOf: string[]) {
  const child = spawn('npm', ['run', '--silent', 'sandbox', '--', ...lookOf], {
    cwd: ROOT,
    // npm finds the compile cache of the tests, and keeps none in the folder for temporary files, where tests look for
    // files that the sandbox left behind.
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  process.once('exit', () => child.kill('SIGTERM'));
  let output = '';
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    /** Resolves with the output once it contains `text`. @throws if the command ends without it */
    prints: (text: string) =>
      new Promise<string>((resolve, reject) => {
        const keep = (more: unknown): void => {
          output += more;
          if (output.includes(text)) resolve(output);
        };
        child.stdout.on('data', keep);
        child.stderr.on('data', keep);
        ended.then(() => reject(new Error(`the sandbox ended: ${output}`)));
      }),
    end(signal: NodeJS.Signals): Promise<number | null> {
      child.kill(signal);
      return ended;
    },
  };
}
