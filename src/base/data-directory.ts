/** What lies in the data directory of an embedded deployment, and whether it is all there. */
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The folder of the database. */
export const clusterIn = (directory: string): string => path.join(directory, 'postgres');

/** Whether there is a database: PostgreSQL's own sign of one. */
export const hasDatabase = (directory: string): boolean =>
  existsSync(path.join(clusterIn(directory), 'PG_VERSION'));

/** There from before the first thing is made until the database is. */
const firstStartIn = (directory: string): string => path.join(directory, '.first-start');

/** Sockets and claims begin with a dot; a disk of its own brings the other. */
const isOfNobody = (name: string): boolean => name.startsWith('.') || name === 'lost+found';

/** Notes that whatever is missing from now on was never there. */
export function beginFirstStart(directory: string): void {
  if (readdirSync(directory).every(isOfNobody)) writeFileSync(firstStartIn(directory), '');
}

export function endFirstStart(directory: string): void {
  rmSync(firstStartIn(directory), { force: true });
}

/** Why a data directory is not opened. `damaged` only for what was shown: other data may be whole. */
export interface DataDirectoryProblem {
  readonly code:
    | 'data_directory_unsafe'
    | 'data_directory_not_writable'
    | 'data_directory_of_another_version'
    | 'data_directory_damaged'
    | 'data_directory_not_opened'
    | 'disk_full';
  /** Follows the name of the directory. */
  readonly what: string;
  readonly remedy: string;
}

export class DataDirectoryRefused extends Error {
  readonly code: DataDirectoryProblem['code'];

  constructor(
    directory: string,
    { code, what, remedy }: DataDirectoryProblem,
    options?: ErrorOptions,
  ) {
    super(`the data directory ${directory} ${what}: ${remedy}`, options);
    this.name = 'DataDirectoryRefused';
    this.code = code;
  }
}

export const RESTORE =
  'stop every process that uses it, copy the whole directory away, put a backup of the whole ' +
  'directory in its place (secrets.json and postgres together), and start again';

/**
 * Refuses to make anything that everybody may write, the socket of the database among it: a folder
 * that is opened a moment later, or copied, would let everybody in.
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
    what: 'would get files that every user of this machine may write (umask 000)',
    remedy: 'start with `umask 077`',
  });
}

/**
 * Refuses a directory in which a new database would take the place of one that is lost, or that
 * others may enter: who reads the database reads password hashes.
 *
 * @throws DataDirectoryRefused
 */
export function refuseDamaged(directory: string): void {
  const mode = statSync(directory).mode & 0o777;
  if (mode & 0o077) {
    throw new DataDirectoryRefused(directory, {
      code: 'data_directory_unsafe',
      what: `can be entered by others (mode ${mode.toString(8)})`,
      remedy: `\`chmod 700 ${directory}\``,
    });
  }
  if (hasDatabase(directory) || existsSync(firstStartIn(directory))) return;
  const found = readdirSync(directory).filter((name) => !isOfNobody(name));
  if (found.length === 0) return;
  throw new DataDirectoryRefused(directory, {
    code: 'data_directory_damaged',
    what: `holds ${found.slice(0, 5).join(', ')}, but no database (postgres/PG_VERSION is missing)`,
    remedy: `${RESTORE}; or name an empty directory (GATEHOUSE_DATA_DIR) for a new one`,
  });
}
