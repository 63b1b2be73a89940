/** PostgreSQL inside the process (PGlite), served on a Unix socket so that `pg` connects as ever. */
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

/** `own`: serve it or refuse. `share`: use whoever serves it, else serve it. */
export type Sharing = 'own' | 'share';

export interface EmbeddedPostgres {
  /** The `host` for `pg`: the folder of `.s.PGSQL.5432`. */
  readonly socketDirectory: string;
  close(): Promise<void>;
}

/** Two processes on one PGlite folder lose each other's acknowledged rows: the second is refused. */
export class EmbeddedPostgresInUse extends Error {
  readonly code = 'data_directory_in_use';

  constructor(dataDirectory: string) {
    super(
      `another process serves the data directory ${dataDirectory}: stop it first, ` +
        'or give this one a directory of its own (GATEHOUSE_DATA_DIR)',
    );
    this.name = 'EmbeddedPostgresInUse';
  }
}

/** Socket addresses are limited to 108 bytes on Linux and to 104 elsewhere. */
const LONGEST_SOCKET_PATH = 100;
const SOCKET_NAME = '.s.PGSQL.5432';
/** How long an operator command may keep the folder before a starting service gives up. */
const PATIENCE_MS = 10_000;
/** How long a process that ends waits for the connections of others. */
const FAREWELL_MS = 5_000;
/** More than the pools of a service and a few commands; PGlite answers one at a time anyway. */
const MAX_CONNECTIONS = 40;

/**
 * Serves the folder's database, or finds out who does.
 *
 * @throws EmbeddedPostgresInUse when `own` was asked and another process keeps the folder.
 */
export async function serveEmbeddedPostgres(
  dataDirectory: string,
  sharing: Sharing,
): Promise<EmbeddedPostgres> {
  const directory = path.resolve(dataDirectory);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const socketDirectory = await socketDirectoryOf(directory);
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const lock = await takeLock(path.join(socketDirectory, 'lock.sock'));
    if (lock) return serve(directory, socketDirectory, lock);
    if (sharing === 'share' && (await accepts(path.join(socketDirectory, SOCKET_NAME)))) {
      return { socketDirectory, close: async () => {} };
    }
    if (Date.now() > deadline) throw new EmbeddedPostgresInUse(directory);
    await delay(100);
  }
}

async function serve(
  directory: string,
  socketDirectory: string,
  lock: Server,
): Promise<EmbeddedPostgres> {
  const db = await PGlite.create(path.join(directory, 'postgres'));
  const socketPath = path.join(socketDirectory, SOCKET_NAME);
  await rm(socketPath, { force: true });
  const server = new PGLiteSocketServer({ db, path: socketPath, maxConnections: MAX_CONNECTIONS });
  await server.start();
  return {
    socketDirectory,
    async close() {
      await othersGone(server);
      await server.stop();
      await db.close();
      await rm(socketPath, { force: true });
      await new Promise((resolve) => lock.close(resolve));
    },
  };
}

/** A command that came while this process served must not lose its database in mid-sentence. */
async function othersGone(server: PGLiteSocketServer): Promise<void> {
  const deadline = Date.now() + FAREWELL_MS;
  while (server.getStats().activeConnections > 0 && Date.now() < deadline) await delay(20);
}

async function socketDirectoryOf(directory: string): Promise<string> {
  if (path.join(directory, SOCKET_NAME).length <= LONGEST_SOCKET_PATH) return directory;
  const name = createHash('sha256').update(directory).digest('hex').slice(0, 16);
  const short = path.join(tmpdir(), `gatehouse-${name}`);
  await mkdir(short, { recursive: true, mode: 0o700 });
  return short;
}

/**
 * A listening socket is the lock: the system drops it with its process, however that ends, and
 * no process number can be mistaken for another's.
 */
async function takeLock(socketPath: string): Promise<Server | undefined> {
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const server = createServer((socket) => socket.destroy());
    const taken = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
      );
      server.listen(socketPath, () => resolve(true));
    });
    if (taken) return server.unref();
    if (await accepts(socketPath)) return undefined;
    await rm(socketPath, { force: true });
  }
  return undefined;
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
