/** PostgreSQL in this process (PGlite), served on a Unix socket so that `pg` can connect to it. */
import { chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import {
  beginFirstStart,
  clusterIn,
  DataDirectoryRefused,
  endFirstStart,
  hasDatabase,
  refuseDamaged,
  refuseOpenUmask,
} from '../../base/data-directory.ts';
import { type DirectoryLock, takeDirectoryLock } from './directory-lock.ts';
import { whyNotOpened } from './failed-open.ts';
import { type EmbeddedServer, type Listen, serveOnSocket } from './server.ts';

/** `own`: serve the database or fail. `share`: use the process that serves it, or serve it. */
export type Sharing = 'own' | 'share';

export interface EmbeddedPostgres {
  /** The `host` option for `pg`: the folder with the socket `.s.PGSQL.5432`. */
  readonly socketDirectory: string;
  /** Undefined if another process serves the database: only that process gets notifications. */
  readonly listen: Listen | undefined;
  close(): Promise<void>;
}

/** Thrown if another process uses the folder: both would lose each other's committed rows. */
export class EmbeddedPostgresInUse extends Error {
  readonly code = 'data_directory_in_use';

  constructor(dataDirectory: string) {
    super(
      `another process uses the data directory ${dataDirectory}: stop it first, or use ` +
        'another directory for this process (GATEHOUSE_DATA_DIR)',
    );
    this.name = 'EmbeddedPostgresInUse';
  }
}

/** Socket addresses are limited to 108 bytes on Linux and to 104 elsewhere. */
const MAX_SOCKET_PATH_BYTES = 100;
const SOCKET_NAME = '.s.PGSQL.5432';
/**
 * Overrides the `shared_buffers` of 128 MB in the data directory's postgresql.conf, because the process would use all
 * of this memory. The file stays unchanged, so every version can open the directory.
 */
const SHARED_BUFFERS = '8MB';
const OPTIONS = { startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${SHARED_BUFFERS}`] };
/** The folder of a database that is being created. */
const UNFINISHED = '.new-postgres';
/** How long a process that wants the folder waits for another process to release it. */
const LOCK_TIMEOUT_MS = 10_000;
/** How long a process that wants to end waits until other processes have disconnected. */
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Serves the database in the folder, or finds the process that serves it.
 *
 * @throws EmbeddedPostgresInUse if another process has not released the folder after `LOCK_TIMEOUT_MS`; with `share`,
 * only if the other process does not serve the database either.
 * @throws DataDirectoryRefused
 */
export async function serveEmbeddedPostgres(
  dataDirectory: string,
  sharing: Sharing,
  maxIdleMs?: number,
): Promise<EmbeddedPostgres> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  // Resolve links: every process must find the same lock and socket by any path to the folder.
  const folder = await openFolder(await realpath(dataDirectory));
  try {
    const deadline = Date.now() + LOCK_TIMEOUT_MS;
    for (;;) {
      const lock = await takeDirectoryLock(folder.path);
      // If the locked file was removed, a process still serves the database although the lock is free.
      const isServed = await accepts(path.join(folder.path, SOCKET_NAME));
      if (lock && !isServed) return await serve(folder, lock, maxIdleMs);
      lock?.release();
      if (sharing === 'share' && isServed) {
        const { path: socketDirectory, close } = folder;
        return { socketDirectory, listen: undefined, close };
      }
      if (Date.now() > deadline) throw new EmbeddedPostgresInUse(folder.realPath);
      // Pause for a random time, so that several processes that start at once do not collide again.
      await delay(50 + Math.random() * 100);
    }
  } catch (error) {
    await folder.close();
    throw error;
  }
}

async function serve(folder: DataFolder, lock: DirectoryLock, maxIdleMs?: number): Promise<EmbeddedPostgres> {
  const socketPath = path.join(folder.path, SOCKET_NAME);
  try {
    const db = await openDatabaseIn(folder.realPath);
    await rm(socketPath, { force: true });
    const server = await serveOnSocket(db, socketPath, maxIdleMs);
    return {
      socketDirectory: folder.path,
      listen: server.listen,
      async close() {
        await waitForOthers(server);
        await server.close();
        await db.close();
        lock.release();
        await folder.close();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** @throws DataDirectoryRefused */
async function openDatabaseIn(directory: string): Promise<PGlite> {
  // Only the owner of the lock can be sure that no other process is creating the database now.
  refuseDamaged(directory);
  refuseOpenUmask(directory);
  beginFirstStart(directory);
  keepBaselineCode();
  try {
    if (!hasDatabase(directory)) await createCluster(directory);
    const db = await PGlite.create(clusterIn(directory), OPTIONS);
    endFirstStart(directory);
    return db;
  } catch (error) {
    throw new DataDirectoryRefused(directory, await whyNotOpened(directory, error), {
      cause: error,
    });
  }
}

/**
 * Creates the database in a temporary folder, and renames the folder when all files are written. PGlite recognizes a
 * database by PG_VERSION, but writes other files later: it would try to open an incomplete database, and fail.
 */
async function createCluster(directory: string): Promise<void> {
  const unfinished = path.join(directory, UNFINISHED);
  await rm(unfinished, { recursive: true, force: true });
  await (await PGlite.create(unfinished, OPTIONS)).close();
  await allowOnlyOwner(unfinished);
  await rename(unfinished, clusterIn(directory));
}

/**
 * PGlite ignores the umask when it creates a database: every user of the machine may write its files.
 * The data directory itself is private, but it may be opened or copied later.
 */
async function allowOnlyOwner(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await chmod(path.join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
  }
}

/**
 * Makes V8 compile WebAssembly only with its baseline compiler from now on. The optimizing compiler needs about 500 MB
 * at its peak, and its code is hardly faster (decision 0008). A process that does not serve the embedded database keeps
 * the defaults of V8.
 */
function keepBaselineCode(): void {
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
}

/** Lets commands that use the database of this process finish before it is closed. */
async function waitForOthers(server: EmbeddedServer): Promise<void> {
  const deadline = Date.now() + CLOSE_TIMEOUT_MS;
  while (server.connections > 0 && Date.now() < deadline) await delay(20);
}

interface DataFolder {
  readonly realPath: string;
  /** A path to the folder, short enough for the socket in it. */
  readonly path: string;
  close(): Promise<void>;
}

async function openFolder(realPath: string): Promise<DataFolder> {
  if (Buffer.byteLength(path.join(realPath, SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES) {
    return { realPath, path: realPath, close: async () => {} };
  }
  const own = await mkdtemp(path.join(tmpdir(), 'gatehouse-'));
  const link = path.join(own, 'data');
  await symlink(realPath, link);
  return { realPath, path: link, close: () => rm(own, { recursive: true, force: true }) };
}

function accepts(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
