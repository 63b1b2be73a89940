/** Finds, starts and pauses real programs for tests, and never leaves one behind. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { accessSync, closeSync, constants, openSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS } from './timeout-factor.ts';

export interface Program {
  /** Suspends all processes of the program (SIGSTOP): it keeps its connections, and hangs. */
  pause(): void;
  resume(): void;
  /** Sends the signal, and waits until the program has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  readonly pid: number;
  /** The processes that the program has started and that still run. */
  children(): readonly number[];
  /** The last part of the output so far. */
  output(): string;
  /** Resolves when the program has ended. */
  readonly exitCode: Promise<number | null>;
  /** Calls `attempt` until it succeeds. @throws Error with the output if the program has ended */
  waitUntil(attempt: () => Promise<unknown>): Promise<void>;
}

/** Environment variables that halve the run time of Node programs. `.mocharc.cjs` sets them. */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };

/** Returns the path of an executable on PATH or in `directories`, or undefined. */
export function findProgram(name: string, directories: readonly string[] = []): string | undefined {
  const searched = [...(process.env.PATH ?? '').split(path.delimiter), ...directories];
  return searched.map((directory) => path.join(directory, name)).find(isExecutable);
}

interface ProgramOptions {
  readonly cwd: string;
  /** The system account to run as when the tests run as root. */
  readonly unprivileged?: string;
  /** Replaces the variables of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What happens to standard output: dropping it, or appending it to a file, costs this process nothing. */
  readonly output?: 'keep' | 'drop' | { readonly file: string };
}

export function startProgram(command: string, args: readonly string[], options: ProgramOptions): Program {
  const [file, ...rest] = boundToThisProcess(command, args, options.unprivileged);
  if (file === undefined) throw new Error('nothing to start');
  const { output: wanted = 'keep' } = options;
  const appended = typeof wanted === 'object' ? openSync(wanted.file, 'a') : undefined;
  const child = spawn(file, rest, {
    cwd: options.cwd,
    env: { ...COMPILE_CACHE, ...(options.environment ?? process.env) },
    stdio: ['ignore', appended ?? (wanted === 'drop' ? 'ignore' : 'pipe'), 'pipe'],
  });
  if (appended !== undefined) closeSync(appended);
  let output = '';
  const keep = (text: unknown): void => {
    output = `${output}${text}`.slice(-20_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.on('error', keep);
  running.add(child);
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (exitCode) => {
      running.delete(child);
      resolve(exitCode);
    });
  });

  return {
    pid: child.pid ?? 0,
    children: () => childrenOf(child.pid),
    output: () => output,
    exitCode: ended,
    pause: () => signalTree(child, 'SIGSTOP'),
    resume: () => signalTree(child, 'SIGCONT'),
    async end(signal) {
      signalTree(child, 'SIGCONT');
      child.kill(signal);
      await ended;
    },
    async waitUntil(attempt) {
      // Do not use Date.now, whose clock a test may have stopped.
      const deadline = performance.now() + PATIENCE_MS;
      for (;;) {
        if (!running.has(child)) throw new Error(`${command} ended: ${output}`);
        try {
          await attempt();
          return;
        } catch (cause) {
          if (performance.now() > deadline) {
            throw new Error(`${command} is not ready: ${output}`, { cause });
          }
          await delay(25);
        }
      }
    },
  };
}

/** Runs a short command to its end, with the same rights as `startProgram`. */
export function runProgram(
  command: string,
  args: readonly string[],
  options: Pick<ProgramOptions, 'cwd' | 'unprivileged'>,
): void {
  const [file, ...rest] = boundToThisProcess(command, args, options.unprivileged);
  if (file === undefined) throw new Error('nothing to run');
  execFileSync(file, rest, { cwd: options.cwd, stdio: 'pipe' });
}

/** Returns a TCP port of 127.0.0.1 without a listener, which no test process hands out again. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (nextPort % BLOCK_SIZE === 0) nextPort = (await claimBlock()) + 1;
    const port = nextPort;
    nextPort += 1;
    const holder = await listenOn(port);
    if (holder === undefined) continue;
    await new Promise((resolve) => holder.close(resolve));
    return port;
  }
}

/**
 * Ports for tests: below the ports that the system gives to connections, and above the ports that
 * fetch refuses (https://fetch.spec.whatwg.org/#port-blocking).
 */
const PORTS = { first: 11_000, end: 32_000 };
const BLOCK_SIZE = 100;
let nextPort = 0;

/**
 * Claims a block of ports for this process by listening on its first port. The system allows only
 * one process to do so, in this or any other run, and frees the port when the process ends.
 */
async function claimBlock(): Promise<number> {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const port = randomInt(PORTS.first / BLOCK_SIZE, PORTS.end / BLOCK_SIZE) * BLOCK_SIZE;
    const holder = await listenOn(port);
    if (holder === undefined) continue;
    // Listen until the process ends, without keeping it from ending.
    holder.unref();
    return port;
  }
  throw new Error('no free TCP ports');
}

function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

/** True if the tests run as root, which PostgreSQL refuses: it then needs another account. */
export const runsAsRoot = process.getuid?.() === 0;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) signalTree(child, 'SIGKILL');
});

const setpriv = findProgram('setpriv');

/** Runs a program with setpriv, which changes the account and asks the kernel to end the program with this process. */
function boundToThisProcess(command: string, args: readonly string[], unprivileged: string | undefined): string[] {
  if (setpriv === undefined) return [command, ...args];
  const account =
    unprivileged !== undefined && runsAsRoot
      ? [`--reuid=${unprivileged}`, `--regid=${unprivileged}`, '--init-groups']
      : [];
  return [setpriv, ...account, '--pdeathsig=INT', '--', command, ...args];
}

/**
 * Signals a process and its children. These are looked up, because PostgreSQL's are in process groups of their own.
 */
function signalTree(child: ChildProcess, signal: NodeJS.Signals): void {
  for (const pid of [child.pid, ...childrenOf(child.pid)]) {
    try {
      if (pid !== undefined) process.kill(pid, signal);
    } catch {
      // Ignore this: the process has just ended.
    }
  }
}

function childrenOf(pid: number | undefined): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the program folders of each PostgreSQL that Debian keeps off PATH, newest first. */
export function postgresFolders(): string[] {
  const root = '/usr/lib/postgresql';
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
    return versions.map((version) => path.join(root, version, 'bin'));
  } catch {
    return [];
  }
}
