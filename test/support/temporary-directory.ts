/** Folders of one test run, gone when it ends, however it ends short of a SIGKILL. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** By which the processes of a run know its folder. The first one makes it, and removes it. */
const VARIABLE = 'TEST_RUN_FOLDER';

/** Everything that this run puts down lies in here: what a killed process leaves behind as well. */
export const runFolder = process.env[VARIABLE] ?? makeRunFolder();

/** An empty folder of its own; the short name leaves room for a Unix socket's path inside it. */
export function temporaryDirectory(purpose: string): string {
  return mkdtempSync(path.join(runFolder, `${purpose}-`));
}

function makeRunFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'gh-'));
  // PostgreSQL runs under an account of its own, and must get to its folder in here.
  chmodSync(folder, 0o711);
  process.env[VARIABLE] = folder;
  // What is still writing was told to end a moment ago.
  const patience = { maxRetries: 10, retryDelay: 100 };
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, ...patience }));
  return folder;
}

// Without these, ending the run with a signal would skip what is to be done at its exit.
process.once('SIGTERM', () => process.exit(143));
process.once('SIGINT', () => process.exit(130));
