/** The data directory of an embedded deployment, and checks that it is complete and private. */
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const clusterIn = (directory: string): string => path.join(directory, 'postgres');

/** True if the directory contains a database, which PostgreSQL itself recognizes by this file. */
export const hasDatabase = (directory: string): boolean => existsSync(path.join(clusterIn(directory), 'PG_VERSION'));

/** A marker file, which exists from before the first file is created until the database is complete. */
const firstStartIn = (directory: string): string => path.join(directory, '.first-start');

/** The file that a running process has locked (storage/embedded/directory-lock.ts). */
export const LOCK_FILE = 'gatehouse.lock';

/** A directory with only such files counts as empty: a socket (`.…`), the lock, and `lost+found` of a disk. */
const isIgnored = (name: string): boolean => name.startsWith('.') || name === LOCK_FILE || name === 'lost+found';

/** Marks an empty directory, so that a first start that fails halfway does not look like damage. */
export function beginFirstStart(directory: string): void {
  if (readdirSync(directory).every(isIgnored)) writeFileSync(firstStartIn(directory), '');
}

export function endFirstStart(directory: string): void {
  rmSync(firstStartIn(directory), { force: true });
}

/** Why a data directory is not opened. `damaged` is used only if proved; otherwise the data may be intact. */
export interface DataDirectoryProblem {
  readonly code:
    | 'data_directory_unsafe'
    | 'data_directory_not_writable'
    | 'data_directory_of_another_version'
    | 'data_directory_damaged'
    | 'data_directory_not_opened'
    | 'disk_full';
  /** The rest of a sentence that begins with the name of the directory. */
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
 * Refuses a umask that would let every user of the machine write the new files, including the socket of the database.
 * It is not enough that the directory is private, because it may be opened or copied later.
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
 * Refuses a directory in which a new database would silently replace a lost one, and a directory
 * that other users may enter: the database contains password hashes.
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
