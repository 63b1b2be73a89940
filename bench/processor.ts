/** Pins processes to cores, and reads the processor time and memory of a process. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { findProgram } from '../test/support/programs.ts';

const taskset = availableParallelism() > 1 ? findProgram('taskset') : undefined;
const MEASURED = '1';
const OTHERS = '0';

/** True if the measured process has a core to itself, without the load and the stores. */
export const isPinned = taskset !== undefined;

/** Returns the command, pinned to the core of the measured process. */
export const onItsCore = (command: Command): Command =>
  taskset === undefined ? command : [taskset, '--cpu-list', MEASURED, ...command];

export type Command = readonly [file: string, ...args: string[]];

/** Moves this process, and what it starts from now on, to the other core. */
export function leaveItsCore(): void {
  if (taskset === undefined) return;
  for (const thread of readdirSync('/proc/self/task')) {
    // One by one: a thread that has just ended cannot be moved, and makes `--all-tasks` fail.
    spawnSync(taskset, ['--cpu-list', '--pid', OTHERS, thread]);
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
