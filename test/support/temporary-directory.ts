/** Folders of one test run, gone when the process ends, however it ends short of a SIGKILL. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const created: string[] = [];

/** An empty folder of its own; the short name leaves room for a Unix socket's path inside it. */
export function temporaryDirectory(purpose: string): string {
  const directory = mkdtempSync(path.join(tmpdir(), `gh-${purpose}-`));
  created.push(directory);
  return directory;
}

// Without this, ending the run with a signal would skip what is to be done at its exit.
process.once('SIGTERM', () => process.exit(143));
process.on('exit', () => {
  for (const directory of created) rmSync(directory, { recursive: true, force: true });
});
