/** Finds out why PostgreSQL could not open a data directory: PGlite only says that it aborted. */
import { constants } from 'node:fs';
import { access, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { clusterIn, type DataDirectoryProblem, hasDatabase } from '../../base/data-directory.ts';

/** The PostgreSQL version of PGlite, as the file PG_VERSION states it. */
export const POSTGRES_VERSION = '18';
/** Free space that PostgreSQL may need to open: one segment of its write-ahead log. */
const NEEDED_BYTES = 16 * 1024 * 1024;

/** Looks for the cause, beginning with harmless ones. Writes a probe of 16 MiB and removes it. */
export async function whyNotOpened(directory: string, cause: unknown): Promise<DataDirectoryProblem> {
  const cluster = clusterIn(directory);
  const noSpace = await fullDisk(directory);
  if (noSpace) return noSpace;
  if (!hasDatabase(directory)) return notCreated(cause);
  return (
    (await refusedFile(cluster)) ??
    (await otherVersion(cluster)) ?? {
      code: 'data_directory_not_opened',
      what: 'holds a database that PostgreSQL could not open, without naming the cause',
      remedy:
        'copy the whole directory before anything else, check that this machine has free ' +
        'memory, and try again; if it fails each time, put a backup of the whole directory in its place',
    }
  );
}

const notCreated = (cause: unknown): DataDirectoryProblem => ({
  code: 'data_directory_not_opened',
  what: `has no database yet, and PostgreSQL could not create one (${cause})`,
  remedy:
    'if it contains the folder postgres, a backup was unpacked only in part: unpack all of it again; otherwise ' +
    'check that this machine has free memory, and start again',
});

const KEPT = 'the data is unchanged: keep it';

async function fullDisk(directory: string): Promise<DataDirectoryProblem | undefined> {
  const probe = path.join(directory, `.probe-${process.pid}`);
  try {
    const { bavail, bsize } = await statfs(directory);
    if (bavail * bsize >= NEEDED_BYTES) await writeFile(probe, Buffer.alloc(NEEDED_BYTES));
    else return full();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT') return full();
    return notWritable(`cannot be written to (${code})`);
  } finally {
    await rm(probe, { force: true }).catch(() => {});
  }
  return undefined;
}

const full = (): DataDirectoryProblem => ({
  code: 'disk_full',
  what: 'is on a disk that is full',
  remedy: `free some space (at least ${NEEDED_BYTES / 2 ** 20} MiB) and start again; ${KEPT}`,
});

const notWritable = (what: string): DataDirectoryProblem => ({
  code: 'data_directory_not_writable',
  what,
  remedy: `make everything in it readable and writable for the user of this process, and start again; ${KEPT}`,
});

async function refusedFile(cluster: string): Promise<DataDirectoryProblem | undefined> {
  for (const entry of await readdir(cluster, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    try {
      await access(file, constants.R_OK | constants.W_OK);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return notWritable(`holds ${file}, which this process cannot read and write (${code})`);
    }
  }
  return undefined;
}

async function otherVersion(cluster: string): Promise<DataDirectoryProblem | undefined> {
  const version = (await readFile(path.join(cluster, 'PG_VERSION'), 'utf8').catch(() => '')).trim();
  if (version === POSTGRES_VERSION || version === '') return undefined;
  return {
    code: 'data_directory_of_another_version',
    what: `was written by PostgreSQL ${version}, but this version of Gatehouse contains ${POSTGRES_VERSION}`,
    remedy: `start the version of Gatehouse that wrote it; ${KEPT}`,
  };
}
