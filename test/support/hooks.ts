/** Mocha's hooks after the test files, in each process that runs some, and after the whole run. */
import { setTimeout as delay } from 'node:timers/promises';
import { endFile, endRun } from './end-of-run.ts';
// Import this for its effect: the first process creates the folder of the run before it starts others.
import './temporary-directory.ts';
import { PATIENCE_MS } from './timeout-factor.ts';

/** Number of listeners that earlier files left open, so that these listeners are not reported for later files. */
let left = 0;

/**
 * Throws if a test file did not close a service: once, and only for that file. The service could answer tests of later
 * files, and a process of a parallel run is ended from outside and would never report it.
 */
async function expectNothingListens(this: Mocha.Context): Promise<void> {
  const files = new Set(this.test?.parent?.suites.map(({ file }) => file));
  const deadline = performance.now() + PATIENCE_MS;
  while (listeners() > left) {
    if (performance.now() > deadline) {
      left = listeners();
      throw new Error(`still listening after ${[...files]}`);
    }
    await delay(20);
  }
}

const listeners = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;

/** In a parallel run each file has its own root suite; otherwise all files share one. */
export const mochaHooks = { afterAll: [endFile, expectNothingListens] };

/**
 * Runs after the whole run. Mocha does not call it in the processes of a parallel run, whose
 * servers end when they exit.
 */
export const mochaGlobalTeardown = endRun;
