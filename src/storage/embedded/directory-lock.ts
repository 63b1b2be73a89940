/** One process at a time in a folder, known by a socket that ends with its process. */
import { readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import path from 'node:path';
import { randomId } from '../../base/random-id.ts';

export interface DirectoryLock {
  release(): Promise<void>;
}

/** Short, because it counts towards the 100 bytes of a socket's path. */
const CLAIM = /^\.own-[A-Za-z0-9_-]{6}$/;

/**
 * Takes the folder, or answers undefined while another process keeps it or wants it too: try again
 * after a moment that is not the same for both.
 *
 * Each process makes a claim of its own first and looks at those of others then. So of two that
 * come at once at least one sees the other, and no file is ever shared that a third could take for
 * left over. The system drops a listening socket with its process, however that ends.
 */
export async function takeDirectoryLock(folder: string): Promise<DirectoryLock | undefined> {
  const name = randomId('.own-', 6);
  const claim = await makeClaim(folder, name);
  const release = async (): Promise<void> => {
    await rm(path.join(folder, name), { force: true });
    await new Promise((resolve) => claim.close(resolve));
  };
  for (const other of await readdir(folder)) {
    if (other === name || !CLAIM.test(other)) continue;
    if (await isAlive(path.join(folder, other))) {
      await release();
      return undefined;
    }
    // Left by a process that was killed; no other will ever use that name.
    await rm(path.join(folder, other), { force: true });
  }
  return { release };
}

/** Renamed when it listens: one that is seen and does not answer is dead for certain. */
async function makeClaim(folder: string, name: string): Promise<Server> {
  const unseen = path.join(folder, name.replace('.own-', '.new-'));
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(unseen, resolve);
  });
  await rename(unseen, path.join(folder, name));
  // The lock alone keeps no process running.
  return server.unref();
}

function isAlive(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // Refused and gone are the two certain signs; whatever else is in the way, somebody may be there.
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT');
    });
  });
}
