/** Pins processes to cores, and reads the processor time and memory of a process. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { findProgram } from '../test/support/programs.ts';

const taskset = availableParallelism() > 1 ? findProgram('taskset') : undefined;
const MEASURED = '1';
const OTHERS = '0';

/** Text for the results: whether the measured process has its own core. */
export const PINNING =
  taskset === undefined
    ? 'Service, load and stores share the cores (needs taskset and two of them).'
    : 'The service has one core to itself; load and stores are on the other.';

/** Returns the command, pinned to the core of the measured process. */
export const onItsCore = (command: Command): Command =>
  taskset === undefined ? command : [taskset, '--cpu-list', MEASURED, ...command];

export type Command = readonly [file: string, ...args: string[]];

/** Moves this process, and what it starts from now on, to the other core. */
export const leaveItsCore = (): void => moveTo(OTHERS);

/** Runs `work` on the core of the measured process, while that process is idle or not started yet. */
export async function onIdleCore<Result>(work: () => Promise<Result>): Promise<Result> {
  moveTo(MEASURED);
  try {
    return await work();
  } finally {
    leaveItsCore();
  }
}

function moveTo(core: string): void {
  if (taskset === undefined) return;
  for (const thread of readdirSync('/proc/self/task')) {
    // Move the threads one by one: a thread that has just ended cannot be moved, and makes `--all-tasks` fail.
    spawnSync(taskset, ['--cpu-list', '--pid', core, thread]);
  }
}

/**
 * Returns the microseconds of processor time that the threads of a process have used; NaN if the
 * system does not report it (Linux does).
 */
export function processorTime(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
      .reduce((sum, nanoseconds) => sum + Number.parseInt(nanoseconds, 10) / 1000, 0);
  } catch {
    return Number.NaN;
  }
}

/** Returns the megabytes that a process has in memory; NaN if the system does not report it. */
export function residentMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
