/** Folders of one test run, removed when the run ends, except after SIGKILL. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';

/** The variable that passes the folder to all processes of a run. The first process creates and removes the folder. */
const VARIABLE = 'TEST_RUN_FOLDER';

/** A run writes some gigabytes; memory for twice as much is free where a folder in memory is used. */
const NEEDED_BYTES = 6 * 1024 ** 3;
const IN_MEMORY = '/dev/shm';

/** The folder with all files of this run, including what a killed process leaves behind. */
export const runFolder = process.env[VARIABLE] ?? makeRunFolder();

/** Creates an empty folder; the short name leaves room for a Unix socket's path inside it. */
export function temporaryDirectory(purpose: string): string {
  return mkdtempSync(path.join(runFolder, `${purpose}-`));
}

/** The folder in memory if it has room and can run programs: databases and copies are faster there. */
function placeForRun(): string {
  if (!existsSync(IN_MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  const isLarge = Math.min(bavail * bsize, freemem()) > NEEDED_BYTES;
  const mount = readFileSync('/proc/mounts', 'utf8').match(/^\S+ \/dev\/shm tmpfs (\S+)/m);
  return isLarge && mount && !mount[1]?.includes('noexec') ? IN_MEMORY : tmpdir();
}

function makeRunFolder(): string {
  const folder = mkdtempSync(path.join(placeForRun(), 'gh-'));
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
