/** The sources of the newest version in `test/previous`, which `npm run release` stores. */
import { execFileSync } from 'node:child_process';
import { globSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { temporaryDirectory } from './temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const [newest] = globSync('test/previous/*.tar.gz', { cwd: ROOT }).sort((one, other) =>
  other.localeCompare(one, 'en', { numeric: true }),
);

/** Undefined until the first version is released. Its packages are those of this checkout. */
export const previousRelease = newest === undefined ? undefined : unpack(newest);

function unpack(archive: string): { readonly version: string; readonly root: string } {
  const root = temporaryDirectory('previous');
  execFileSync('tar', ['-xzf', path.join(ROOT, archive), '-C', root]);
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(root, 'node_modules'));
  return { version: path.basename(archive, '.tar.gz'), root };
}
