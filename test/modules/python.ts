/** The Python module, with the first Python of this machine that has its HTTP client. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { findProgram } from '../support/programs.ts';
import type { Requirement } from '../support/requirements.ts';

export const MODULE = path.join(import.meta.dirname, '../../modules/python');

/** The folder of the caches is not the project's, and an isolated start reads no other folder. */
export const environment = {
  ...process.env,
  PYTHONPATH: path.join(MODULE, 'src'),
  PYTHONDONTWRITEBYTECODE: '1',
};

export const python: Requirement = {
  // Debian's packages belong to Debian's own Python, which may not be the first on PATH.
  program: [findProgram('python3'), '/usr/bin/python3'].find(hasHttpClient),
  remedy: 'Python 3.9 or later with httpx (Debian packages python3 and python3-httpx)',
};

function hasHttpClient(program: string | undefined): boolean {
  if (program === undefined) return false;
  try {
    execFileSync(program, ['-c', 'import sys, httpx; assert sys.version_info >= (3, 9)'], {
      cwd: MODULE,
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}
