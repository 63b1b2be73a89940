/** What mocha does around the files, in each process that runs some, and around the whole run. */
import { setTimeout as delay } from 'node:timers/promises';
import { endFile, endRun } from './end-of-run.ts';
// The first process of a run makes its folder, before the others are started.
import './temporary-directory.ts';

/** Milliseconds in which what is being closed is closed. */
const LONGEST_CLOSING = 30_000;

/** What a file left open is its own fault, and not also that of each file after it. */
let left = 0;

/**
 * A service that its file forgot would answer the files after it as well, and a process of a parallel
 * run, which is ended from outside, would never tell. Said once, of the file that forgot it.
 */
async function expectNothingListens(this: Mocha.Context): Promise<void> {
  const files = new Set(this.test?.parent?.suites.map(({ file }) => file));
  const deadline = performance.now() + LONGEST_CLOSING;
  while (listeners() > left) {
    if (performance.now() > deadline) {
      left = listeners();
      throw new Error(`still listening after ${[...files]}`);
    }
    await delay(20);
  }
}

const listeners = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;

/** In a parallel run each file has a root suite of its own; else all files share one. */
export const mochaHooks = { afterAll: [endFile, expectNothingListens] };

/** Not in the processes of a parallel run: their servers end when they exit. */
export const mochaGlobalTeardown = endRun;
