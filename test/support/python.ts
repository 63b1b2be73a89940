/** A Python with packages from PyPI: installed once, and kept for later runs. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { installedOnce } from './npm-packages.ts';
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
  const name = packages.join('-').replaceAll(/==|[^\w.-]/g, '-');
  const known = found.get(name) ?? find(name, packages);
  found.set(name, known);
  return known;
}

async function find(name: string, packages: readonly string[]): Promise<Python> {
  const python = findProgram('python3');
  if (python === undefined) return { reason: 'needs python3' };
  const interpreter = (folder: string) => path.join(folder, 'bin', 'python');
  const installed = await installedOnce(name, `${packages.join(', ')} from PyPI`, async (folder) => {
    await run(python, ['-m', 'venv', folder], { timeout: INSTALLATION_MS });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    const installing = [...pip, '--timeout', '10', '--retries', '1', ...packages];
    await run(interpreter(folder), installing, { timeout: INSTALLATION_MS });
  });
  return 'reason' in installed ? installed : { program: interpreter(installed.folder) };
}
