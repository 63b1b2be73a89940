/** Data directories for the embedded PostgreSQL: created once per run, then copied. */
import { constants, cpSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openDatabase } from '../../src/storage/database.ts';
import { takeDirectoryLock } from '../../src/storage/embedded/directory-lock.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfFile } from './end-of-run.ts';
import { madeOnce } from './made-once.ts';
import { runFolder, temporaryDirectory } from './temporary-directory.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

/**
 * Creates a data directory with the schema of this version and no rows, for the rest of the file.
 * The first one of a run takes more than a second, because of the migrations; others are copies.
 *
 * @param directory empty, and not accessible to others
 */
export async function freshDataDirectory(directory = temporaryDirectory('data')): Promise<string> {
  const cluster = await template();
  // A copy has 40 MB: clone the files if the file system can, and remove them before the end of the
  // run.
  const mode = constants.COPYFILE_FICLONE;
  cpSync(cluster, path.join(directory, CLUSTER), { recursive: true, mode });
  atEndOfFile(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** The folder of the cluster in a data directory. Only this is copied, not the sockets next to it. */
const CLUSTER = 'postgres';

/** Creates the template in the first process of the run; the others wait for it. */
const template = madeOnce(async () => {
  const folder = path.join(runFolder, 'template');
  const finished = path.join(folder, 'finished');
  mkdirSync(folder, { recursive: true });
  while (!existsSync(finished)) {
    const lock = await takeDirectoryLock(folder);
    if (!lock) {
      await delay(50 + Math.random() * 50);
      continue;
    }
    try {
      if (!existsSync(finished)) renameSync(await createCluster(), finished);
    } finally {
      await lock.release();
    }
  }
  return finished;
});

async function createCluster(): Promise<string> {
  const dataDirectory = temporaryDirectory('template');
  const database = await openDatabase({ dataDirectory, timeoutFactor: TIMEOUT_FACTOR });
  await migrate(database).finally(() => database.close());
  return path.join(dataDirectory, CLUSTER);
}
