/** A Python with Authlib and requests from PyPI: installed once, and kept for later runs. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './programs.ts';

const PACKAGES = ['Authlib==1.9.8', 'requests==2.34.2'];
const kept = path.join(tmpdir(), `gatehouse-${PACKAGES.join('-').replaceAll('==', '-')}`);

const run = promisify(execFile);

type Python = { readonly program: string } | { readonly reason: string };

let found: Promise<Python> | undefined;

/** Returns the interpreter, or why this machine has none. Asks PyPI at most once in a run. */
export function pythonWithAuthlib(): Promise<Python> {
  found ??= find();
  return found;
}

async function find(): Promise<Python> {
  const program = path.join(kept, 'bin', 'python');
  if (existsSync(program)) return { program };
  const python = findProgram('python3');
  if (python === undefined) return { reason: 'needs python3' };
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-python-'));
  try {
    await run(python, ['-m', 'venv', folder], { timeout: 60_000 });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    const limits = ['--timeout', '10', '--retries', '1'];
    const installing = [...pip, ...limits, ...PACKAGES];
    await run(path.join(folder, 'bin', 'python'), installing, { timeout: 90_000 });
    // If another run was faster, use its folder.
    if (!existsSync(kept)) await rename(folder, kept);
    return { program };
  } catch (error) {
    const [firstLine = ''] = String((error as { stderr?: string }).stderr ?? error).split('\n');
    return { reason: `needs Authlib from PyPI: ${firstLine}` };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
