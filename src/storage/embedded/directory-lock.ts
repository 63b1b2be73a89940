/** Lets only one process use a data directory, by a lock that the kernel frees when the process ends. */
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { DataDirectoryRefused, LOCK_FILE } from '../../base/data-directory.ts';

export interface DirectoryLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/** Keeps the locks referenced: a lock that is collected as garbage would be freed. */
const held = new Set<DatabaseSync>();

/**
 * Locks the directory. Returns undefined if another process, or this one, has the lock.
 *
 * Node has no function for kernel locks, but its SQLite locks a file during an exclusive transaction. The file stays
 * empty. Never remove it: two processes could then lock two different files.
 *
 * @throws DataDirectoryRefused
 */
export async function takeDirectoryLock(directory: string): Promise<DirectoryLock | undefined> {
  // Import `node:sqlite` only on demand: most deployments have no embedded database.
  const sqlite = await import('node:sqlite');
  const file = new sqlite.DatabaseSync(path.join(directory, LOCK_FILE), { open: false });
  const release = (): void => {
    held.delete(file);
    if (file.isOpen) file.close();
  };
  try {
    file.open();
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    held.add(file);
    return { release };
  } catch (error) {
    release();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw new DataDirectoryRefused(directory, {
      code: 'data_directory_not_writable',
      what: `cannot be locked (${LOCK_FILE}: ${(error as Error).message})`,
      remedy:
        'give the user of the service permission to write there, on a file system with locks: ' +
        'some network file systems have none',
    });
  }
}
