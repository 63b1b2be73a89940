/** Results that are created once per process, or once per run. */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { takeDirectoryLock } from '../../src/storage/embedded/directory-lock.ts';
import { runFolder } from './temporary-directory.ts';

/**
 * Calls `make` once and returns its result from then on. A failure is not cached: it rejects only
 * the calls that wait for it, so that it breaks one suite and not all later ones.
 */
export function madeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/**
 * Returns the path of a folder that the first process of the run creates; the others wait for it.
 *
 * @param make creates the folder somewhere in the folder of the run, from where it is moved
 */
export const folderOfRun = (name: string, make: () => Promise<string>): (() => Promise<string>) =>
  madeOnce(async () => {
    const folder = path.join(runFolder, name);
    const finished = path.join(folder, 'finished');
    mkdirSync(folder, { recursive: true });
    while (!existsSync(finished)) {
      const lock = await takeDirectoryLock(folder);
      if (!lock) {
        await delay(50 + Math.random() * 50);
        continue;
      }
      try {
        if (!existsSync(finished)) renameSync(await make(), finished);
      } finally {
        await lock.release();
      }
    }
    return finished;
  });
