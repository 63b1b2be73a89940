/** Folders of one test run, removed when the run ends, except after SIGKILL. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * The variable that passes the folder to all processes of a run. The first process creates and
 * removes the folder.
 */
const VARIABLE = 'TEST_RUN_FOLDER';

/** The folder with all files of this run, including what a killed process leaves behind. */
export const runFolder = process.env[VARIABLE] ?? makeRunFolder();

/** Creates an empty folder; the short name leaves room for a Unix socket's path inside it. */
export function temporaryDirectory(purpose: string): string {
  return mkdtempSync(path.join(runFolder, `${purpose}-`));
}

function makeRunFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'gh-'));
  // PostgreSQL, which runs under another account, must reach its own folder in this one.
  chmodSync(folder, 0o711);
  process.env[VARIABLE] = folder;
  // Retry, because programs that have just been ended may still be writing.
  const retries = { maxRetries: 10, retryDelay: 100 };
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, ...retries }));
  return folder;
}

// Exit on signals: otherwise a run that is ended with a signal would skip its exit handlers.
process.once('SIGTERM', () => process.exit(143));
process.once('SIGINT', () => process.exit(130));
