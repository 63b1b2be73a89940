/** What mocha does around the files, in each process that runs some, and around the whole run. */
import { endFile, endRun } from './end-of-run.ts';
// The first process of a run makes its folder, before the others are started.
import './temporary-directory.ts';

/** In a parallel run each file has a root suite of its own; else all files share one. */
export const mochaHooks = { afterAll: [endFile] };

/** Not in the processes of a parallel run: their servers end when they exit. */
export const mochaGlobalTeardown = endRun;
