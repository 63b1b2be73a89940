/** Explains that PostgreSQL could not open a data directory: PGlite only says that it aborted. */
import { readFile, statfs } from 'node:fs/promises';
import path from 'node:path';
import { clusterIn, type DataDirectoryProblem, hasDatabase } from '../../base/data-directory.ts';

/** The PostgreSQL version of PGlite, as the file PG_VERSION states it. */
export const POSTGRES_VERSION = '18';
/** Free space that PostgreSQL may need to open: one segment of its write-ahead log. */
const NEEDED_BYTES = 16 * 1024 * 1024;

/** Causes that PGlite reports as if the data were damaged, although they leave the data intact. */
const OUTSIDE_CAUSES =
  'that the disk accepts writes (it is not mounted read-only, and has space and inodes left, also within a quota), that ' +
  'this process may read and write every file in the directory, and that this machine has free memory';

/** Finds out why a database cannot be opened. Checks harmless causes first. */
export async function whyNotOpened(directory: string, cause: unknown): Promise<DataDirectoryProblem> {
  const disk = await statfs(directory).catch(() => undefined);
  if (disk && disk.bavail * disk.bsize < NEEDED_BYTES) {
    return {
      code: 'disk_full',
      what: 'is on a disk that is full',
      remedy: `free some space (at least ${NEEDED_BYTES / 2 ** 20} MiB) and start again; the data is unchanged: keep it`,
    };
  }
  if (!hasDatabase(directory)) {
    return {
      code: 'data_directory_not_opened',
      what: `has no database yet, and PostgreSQL could not create one (${cause})`,
      remedy:
        'if it contains the folder postgres, a backup was unpacked only in part: unpack all of it again; otherwise ' +
        `check ${OUTSIDE_CAUSES}, and start again`,
    };
  }
  const version = (await readFile(path.join(clusterIn(directory), 'PG_VERSION'), 'utf8').catch(() => '')).trim();
  if (version !== POSTGRES_VERSION && version !== '') {
    return {
      code: 'data_directory_of_another_version',
      what: `was written by PostgreSQL ${version}, but this version of Gatehouse contains ${POSTGRES_VERSION}`,
      remedy: 'start the version of Gatehouse that wrote it; the data is unchanged: keep it',
    };
  }
  return {
    code: 'data_directory_not_opened',
    what: 'holds a database that PostgreSQL could not open, without naming the cause',
    remedy:
      'the data may be unchanged: copy the whole directory before anything else; check ' +
      `${OUTSIDE_CAUSES}, then start again; if it fails each time, put a backup of the whole directory in its place`,
  };
}
