/** Checks that the data directory of an embedded deployment is complete and private. */
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const clusterIn = (directory: string): string => path.join(directory, 'postgres');

/** PostgreSQL itself recognizes a database by the file `PG_VERSION`. */
export const hasDatabase = (directory: string): boolean => existsSync(path.join(clusterIn(directory), 'PG_VERSION'));

/** The path of a marker file, which exists during the first start, until the database is complete. */
const firstStartIn = (directory: string): string => path.join(directory, '.first-start');

/** The name of the file that a running process locks (storage/embedded/directory-lock.ts). */
export const LOCK_FILE = 'gatehouse.lock';

/** A new directory may contain hidden files such as a socket, the lock, and the `lost+found` of a file system. */
const isIgnored = (name: string): boolean => name.startsWith('.') || name === LOCK_FILE || name === 'lost+found';

/** Marks an empty directory, so that a later start can tell an interrupted first start from a damaged database. */
export function beginFirstStart(directory: string): void {
  if (readdirSync(directory).every(isIgnored)) writeFileSync(firstStartIn(directory), '');
}

export function endFirstStart(directory: string): void {
  rmSync(firstStartIn(directory), { force: true });
}

/** Why a data directory cannot be opened. Only `damaged` means that the data is certainly damaged. */
export interface DataDirectoryProblem {
  readonly code:
    | 'data_directory_unsafe'
    | 'data_directory_not_writable'
    | 'data_directory_of_another_version'
    | 'data_directory_damaged'
    | 'data_directory_not_opened'
    | 'disk_full';
  /** The words that follow the path of the directory in the error message. */
  readonly what: string;
  readonly remedy: string;
}

export class DataDirectoryRefused extends Error {
  readonly code: DataDirectoryProblem['code'];

  constructor(directory: string, { code, what, remedy }: DataDirectoryProblem, options?: ErrorOptions) {
    super(`the data directory ${directory} ${what}: ${remedy}`, options);
    this.name = 'DataDirectoryRefused';
    this.code = code;
  }
}

const RESTORE =
  'stop every process that uses it, save a copy of the whole directory, put a backup of ' +
  'the whole directory in its place (secrets.json and postgres together), and start again';

/**
 * Refuses a umask with which every user of the machine could write new files and the socket of the database. A private
 * directory alone does not prevent this, because its mode may change later, and the files may be copied.
 *
 * @throws DataDirectoryRefused
 */
export function refuseOpenUmask(directory: string): void {
  const probe = path.join(directory, `.umask-${process.pid}`);
  writeFileSync(probe, '');
  const { mode } = statSync(probe);
  rmSync(probe);
  if ((mode & 0o002) === 0) return;
  throw new DataDirectoryRefused(directory, {
    code: 'data_directory_unsafe',
    what: 'would get files that every user of this machine can write (umask 000)',
    remedy: 'start with `umask 077`',
  });
}

/**
 * Refuses a directory from which the database was lost, so that no new, empty database replaces it silently. Also
 * refuses a directory that other users may enter, because the database contains password hashes.
 *
 * @throws DataDirectoryRefused
 */
export function refuseDamaged(directory: string): void {
  const mode = statSync(directory).mode & 0o777;
  if (mode & 0o077) {
    throw new DataDirectoryRefused(directory, {
      code: 'data_directory_unsafe',
      what: `can be entered by other users (mode ${mode.toString(8)})`,
      remedy: `\`chmod 700 ${directory}\``,
    });
  }
  if (hasDatabase(directory) || existsSync(firstStartIn(directory))) return;
  const found = readdirSync(directory).filter((name) => !isIgnored(name));
  if (found.length === 0) return;
  throw new DataDirectoryRefused(directory, {
    code: 'data_directory_damaged',
    what: `holds ${found.slice(0, 5).join(', ')}, but no database (postgres/PG_VERSION is missing)`,
    remedy: `${RESTORE}; or name an empty directory (GATEHOUSE_DATA_DIR) for a new one`,
  });
}
