/** What runs on which core, and what a process takes of it. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { findProgram } from '../test/support/programs.ts';

const taskset = availableParallelism() > 1 ? findProgram('taskset') : undefined;
const MEASURED = '1';
const OTHERS = '0';

/** Whether what is measured has a core to itself, without the load and the stores. */
export const isPinned = taskset !== undefined;

/** The command, on the core for what is measured. */
export const onItsCore = (command: Command): Command =>
  taskset === undefined ? command : [taskset, '--cpu-list', MEASURED, ...command];

export type Command = readonly [file: string, ...args: string[]];

/** Takes this process off that core, and with it what it starts from now on. */
export function leaveItsCore(): void {
  if (taskset === undefined) return;
  for (const thread of readdirSync('/proc/self/task')) {
    // One that has ended meanwhile cannot be moved (`--all-tasks` fails with it).
    spawnSync(taskset, ['--cpu-list', '--pid', OTHERS, thread]);
  }
}

/**
 * Microseconds of processor time that the threads of a process have taken; NaN where the system
 * does not tell (Linux does).
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

/** Megabytes that a process has in memory; NaN as above. */
export function residentMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
