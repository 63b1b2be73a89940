/** Data directories for the embedded PostgreSQL: created once per run, then copied. */
import { constants, cpSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfFile } from './end-of-run.ts';
import { folderOfRun } from './made-once.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

/**
 * Creates a data directory with the schema of this version and no rows, for the rest of the file.
 * The first one of a run takes more than a second, because of the migrations; others are copies.
 *
 * @param directory empty, and not accessible to others
 */
export async function freshDataDirectory(directory = temporaryDirectory('data')): Promise<string> {
  const cluster = await template();
  // A copy has 40 MB: clone the files if the file system can, and remove them before the end of the run.
  const mode = constants.COPYFILE_FICLONE;
  cpSync(cluster, path.join(directory, CLUSTER), { recursive: true, mode });
  atEndOfFile(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** The folder of the cluster in a data directory. Only this is copied, not the sockets next to it. */
const CLUSTER = 'postgres';

const template = folderOfRun('template', async () => {
  const dataDirectory = temporaryDirectory('template');
  const database = await openDatabase({ dataDirectory, timeoutFactor: TIMEOUT_FACTOR });
  await migrate(database).finally(() => database.close());
  return path.join(dataDirectory, CLUSTER);
});
