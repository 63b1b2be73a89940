/** Lets only one process use a folder: the process listens on a socket there until it ends. */
import { readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import path from 'node:path';
import { randomId } from '../../base/random-id.ts';

export interface DirectoryLock {
  release(): Promise<void>;
}

/** The pattern of a claim's name, which is short because a socket's path has at most 100 bytes. */
const CLAIM = /^\.own-[A-Za-z0-9_-]{6}$/;

/**
 * Locks the folder. Returns undefined if another process has the lock or is trying to get it: try
 * again after a random pause, so that both do not collide again.
 *
 * Each process first makes its own claim and then looks for other claims. So if two processes start
 * at once, at least one sees the other, and they share no file that a third could mistake for a
 * leftover. However a process ends, the system closes its listening socket.
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
    if (await isListening(path.join(folder, other))) {
      await release();
      return undefined;
    }
    // A killed process left this claim. No other process will ever use the same name.
    await rm(path.join(folder, other), { force: true });
  }
  return { release };
}

/** Makes a claim that listens before it gets its name: a claim that does not listen has no owner. */
async function makeClaim(folder: string, name: string): Promise<Server> {
  const draft = path.join(folder, name.replace('.own-', '.new-'));
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(draft, resolve);
  });
  await rename(draft, path.join(folder, name));
  // The lock alone must not keep the process running.
  return server.unref();
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // Only these two codes prove that the owner has ended; after any other it may still run.
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT');
    });
  });
}
