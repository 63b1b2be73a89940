/** A Python with packages from PyPI: installed once, and kept for later runs. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './programs.ts';
import { INSTALLATION_MS } from './timeout-factor.ts';

const run = promisify(execFile);

type Python = { readonly program: string } | { readonly reason: string };

const found = new Map<string, Promise<Python>>();

/** Returns the interpreter, or why this machine has none. Asks PyPI at most once in a run. */
export const pythonWithAuthlib = (): Promise<Python> => pythonWith(['Authlib==1.9.8', 'requests==2.34.2']);

/**
 * Like `pythonWithAuthlib`, for other packages.
 *
 * @param packages each with its exact version
 */
export function pythonWith(packages: readonly string[]): Promise<Python> {
  const name = `gatehouse-${packages.join('-').replaceAll(/==|[^\w.-]/g, '-')}`;
  const known = found.get(name) ?? find(path.join(tmpdir(), name), packages);
  found.set(name, known);
  return known;
}

async function find(kept: string, packages: readonly string[]): Promise<Python> {
  const program = path.join(kept, 'bin', 'python');
  if (existsSync(program)) return { program };
  const python = findProgram('python3');
  if (python === undefined) return { reason: 'needs python3' };
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-python-'));
  try {
    await run(python, ['-m', 'venv', folder], { timeout: INSTALLATION_MS });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    const limits = ['--timeout', '10', '--retries', '1'];
    const installing = [...pip, ...limits, ...packages];
    await run(path.join(folder, 'bin', 'python'), installing, { timeout: INSTALLATION_MS });
    // If another run was faster, use its folder.
    if (!existsSync(kept)) await rename(folder, kept);
    return { program };
  } catch (error) {
    const [firstLine = ''] = String((error as { stderr?: string }).stderr ?? error).split('\n');
    return { reason: `needs ${packages.join(', ')} from PyPI: ${firstLine}` };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
