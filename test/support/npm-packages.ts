/** Packages of npm that are too large for the lock file: installed once, and kept for later runs. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { INSTALLATION_MS } from './timeout-factor.ts';

const run = promisify(execFile);

type Installed = { readonly folder: string } | { readonly reason: string };

/**
 * Installs these packages into a folder of their own, unless an earlier run has done so.
 *
 * @param packages each with its exact version
 * @returns the folder `node_modules`, or why it is missing
 */
export function installedPackages(packages: readonly string[]): Promise<Installed> {
  const name = packages.join('-').replaceAll(/[^\w.-]+/g, '-');
  return install(name, ['install', ...packages], (fresh) =>
    writeFile(path.join(fresh, 'package.json'), '{ "private": true }'),
  );
}

/**
 * Installs the packages of a lock file, unless an earlier run has done so.
 *
 * @param source the folder with `package.json` and its lock file
 * @returns the folder `node_modules`, or why it is missing
 */
export async function installedLock(source: string): Promise<Installed> {
  const lock = await readFile(path.join(source, 'package-lock.json'));
  const name = createHash('sha256').update(lock).digest('hex').slice(0, 16);
  return install(name, ['ci'], (fresh) => cp(source, fresh, { recursive: true }));
}

async function install(
  name: string,
  command: readonly string[],
  prepare: (folder: string) => Promise<void>,
): Promise<Installed> {
  const kept = path.join(tmpdir(), `gatehouse-npm-${name}`);
  const folder = path.join(kept, 'node_modules');
  if (existsSync(folder)) return { folder };
  const fresh = await mkdtemp(path.join(tmpdir(), 'gatehouse-npm-'));
  try {
    await prepare(fresh);
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0'];
    await run('npm', [...command, ...flags], { cwd: fresh, timeout: INSTALLATION_MS });
    // If another run was faster, use its folder.
    if (!existsSync(kept)) await rename(fresh, kept);
    return { folder };
  } catch (error) {
    const lines = String((error as { stderr?: string }).stderr ?? error).split('\n');
    const cause = lines.find((line) => !line.startsWith('npm warn'));
    return { reason: `needs packages from npm (npm ${command.join(' ')}): ${cause}` };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
