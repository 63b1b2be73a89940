/** Data directories for the embedded PostgreSQL: made once per run, then copied. */
import { cpSync } from 'node:fs';
import path from 'node:path';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/**
 * A data directory with the schema of this version and no rows. The first one takes seconds,
 * because PGlite sets a cluster up; each further one is a copy and takes a twentieth of that.
 */
export async function freshDataDirectory(): Promise<string> {
  template ??= createTemplate();
  const directory = temporaryDirectory('data');
  cpSync(await template, path.join(directory, CLUSTER), { recursive: true });
  return directory;
}

/** The folder of the cluster in a data directory. Its neighbors are sockets, never copied. */
const CLUSTER = 'postgres';

let template: Promise<string> | undefined;

async function createTemplate(): Promise<string> {
  const dataDirectory = temporaryDirectory('template');
  const database = await openDatabase({ dataDirectory });
  await migrate(database).finally(() => database.close());
  return path.join(dataDirectory, CLUSTER);
}
