/** Packages of npm that are too large for the lock file: installed once, and kept for later runs. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

type Installed = { readonly folder: string } | { readonly reason: string };

/**
 * Installs these packages into a folder of their own, unless an earlier run has done so.
 *
 * @param packages each with its exact version
 * @returns the folder `node_modules`, or why it is missing
 */
export async function installedPackages(packages: readonly string[]): Promise<Installed> {
  const name = `gatehouse-npm-${packages.join('-').replaceAll(/[^\w.-]+/g, '-')}`;
  const kept = path.join(tmpdir(), name);
  const folder = path.join(kept, 'node_modules');
  if (existsSync(folder)) return { folder };
  const fresh = await mkdtemp(path.join(tmpdir(), 'gatehouse-npm-'));
  try {
    await writeFile(path.join(fresh, 'package.json'), '{ "private": true }');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0'];
    const timeout = 90_000;
    await run('npm', ['install', ...flags, ...packages], { cwd: fresh, timeout });
    // If another run was faster, use its folder.
    if (!existsSync(kept)) await rename(fresh, kept);
    return { folder };
  } catch (error) {
    const [firstLine = ''] = String((error as { stderr?: string }).stderr ?? error).split('\n');
    return { reason: `needs ${packages.join(', ')} from npm: ${firstLine}` };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
