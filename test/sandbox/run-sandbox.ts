/** `npm run sandbox`, the way a newcomer runs it: one command, and what it prints. */
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const ROOT = path.join(import.meta.dirname, '../..');

export interface RunningSandbox {
  readonly partner: string;
  readonly issuer: string;
  readonly apiUrl: string;
  readonly signIn: { readonly email: string; readonly password: string };
  /** The command lines it says to copy, as they stand there. */
  readonly commands: readonly string[];
  /** Runs one of them in a shell, in the folder of the project. @returns what it prints. */
  run(command: string | undefined): Promise<string>;
  /** Signals npm, which passes it on. @returns the exit code of npm. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** @param environment what is set beside the variables of this process. */
export async function runSandbox(environment: Record<string, string>): Promise<RunningSandbox> {
  const { says, end } = spawnSandbox(environment);
  // The last line of what it prints when everything is up.
  const output = await says('Ctrl-C');

  const found = (pattern: RegExp): string => {
    const [, match] = pattern.exec(output) ?? [];
    if (match === undefined) throw new Error(`no ${pattern} in ${output}`);
    return match;
  };
  return {
    partner: found(/Partner app +(\S+)/),
    issuer: found(/Gatehouse +(http\S+)/),
    apiUrl: found(/Warehouse API +(\S+)/),
    signIn: { email: found(/sign in as (\S+),/), password: found(/password (\S+)/) },
    // A line that ends in a backslash or a bar goes on in the next one.
    commands: output.match(/^ {3}(?:[A-Z_]+=|curl )(?:.*[\\|]\n)*.*$/gm) ?? [],

    async run(command = '') {
      const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: ROOT });
      return stdout;
    },

    end,
  };
}

/** The command alone, which may not be ready yet. */
export function spawnSandbox(environment: Record<string, string>) {
  const child = spawn('npm', ['run', '--silent', 'sandbox'], {
    cwd: ROOT,
    // npm on a Node that caches compiled code would keep it in the folder for temporary files, where
    // tests look for what the sandbox left behind.
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  process.once('exit', () => child.kill('SIGTERM'));
  let output = '';
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    /** Everything it said, as soon as `text` is in it. @throws Error when it ended before. */
    says: (text: string) =>
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
