/** Pins processes to cores, and reads the processor time and memory of a process. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, constants, getPriority, setPriority } from 'node:os';
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
export const leaveItsCore = (): void => moveTo(OTHERS);

/** Uses the core of the measured process, while that one is idle or not started yet. */
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
    // One by one: a thread that has just ended cannot be moved, and makes `--all-tasks` fail.
    spawnSync(taskset, ['--cpu-list', '--pid', core, thread]);
  }
}

/**
 * From now on this process gets a core whenever it needs one, as if it had a machine of its own.
 * Without the right to do so (root on Linux) it shares the cores with the others, and says so.
 */
export function takePrecedence(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST);
  } catch (error) {
    console.log(`This process has no precedence over the service: ${error}`);
  }
}

/** Starts a process, which would otherwise have the precedence of this one. @param start starts it at once */
export function withoutPrecedence<Started>(start: () => Started): Started {
  const before = getPriority();
  if (before === constants.priority.PRIORITY_NORMAL) return start();
  setPriority(constants.priority.PRIORITY_NORMAL);
  try {
    return start();
  } finally {
    setPriority(before);
  }
}

/**
 * Returns the processor time of all cores since the system was started, in ticks of its clock; NaN if
 * unknown. `stolen` is what this virtual machine wanted and the host gave to others.
 */
export function processorTimes(): { readonly busy: number; readonly stolen: number } {
  try {
    const [total = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
    // The fields of proc(5), where idle and iowait are no use of the processor.
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = Number.NaN] = total
      .split(/\s+/)
      .slice(1)
      .map(Number);
    return { busy: user + nice + system + irq + softirq, stolen };
  } catch {
    return { busy: Number.NaN, stolen: Number.NaN };
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

/**
 * Like `processorTime`, including the children of the process, also those that have ended:
 * PostgreSQL uses one for each connection and for each autovacuum.
 */
export function processorTimeOfTree(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    // The fields after the name, which is in brackets and may contain spaces: proc(5), 16 and 17.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const ended = (Number(stat[13]) + Number(stat[14])) * MICROSECONDS_PER_TICK;
    const running = children.filter(Boolean).map((child) => processorTimeOfTree(Number(child)));
    return running.reduce((sum, time) => sum + (time || 0), processorTime(pid) + ended);
  } catch {
    return Number.NaN;
  }
}

/** USER_HZ, which is 100 on every Linux. */
const MICROSECONDS_PER_TICK = 10_000;

/** Returns the megabytes that a process has in memory; NaN if the system does not report it. */
export function residentMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/**
 * Returns the microseconds for which the main thread of this process was ready to run, but waited
 * for a core; NaN if the system does not report it (Linux does).
 */
export function waitedForCore(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1000;
  } catch {
    return Number.NaN;
  }
}
