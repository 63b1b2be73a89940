/** Mocha's hooks after the test files, in each process that runs some, and after the whole run. */
import { setTimeout as delay } from 'node:timers/promises';
import { endFile, endRun } from './end-of-run.ts';
// The first process of a run creates the folder of the run, before the others are started.
import './temporary-directory.ts';

const CLOSING_TIMEOUT_MS = 30_000;

/** Number of listeners that earlier files left open, so that later files are not reported for them. */
let left = 0;

/**
 * Throws if a file did not close a service, once and only for that file. The service would answer
 * later files as well, and a process of a parallel run, ended from outside, would never report it.
 */
async function expectNothingListens(this: Mocha.Context): Promise<void> {
  const files = new Set(this.test?.parent?.suites.map(({ file }) => file));
  const deadline = performance.now() + CLOSING_TIMEOUT_MS;
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

/** In a parallel run each file has its own root suite; otherwise all files share one. */
export const mochaHooks = { afterAll: [endFile, expectNothingListens] };

/** Not called in the processes of a parallel run: their servers end when they exit. */
export const mochaGlobalTeardown = endRun;
