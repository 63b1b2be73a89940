/** The programs of the guide for GraphQL APIs, read from the guide itself. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '../..');

/**
 * Writes files of the guide to a project: the content of each is the block of JavaScript after its
 * name.
 *
 * @param packages to install in the project: names, or pairs of a name and a folder of node_modules
 */
export function writeGuideTo(
  project: string,
  files: readonly string[],
  packages: readonly (string | readonly [name: string, folder: string])[],
): void {
  const text = readFileSync(path.join(ROOT, 'docs/graphql-api.md'), 'utf8');
  for (const file of files) {
    const [, code] = new RegExp(`\`${file}\`[^]*?\`\`\`js\n([^]*?)\`\`\``).exec(text) ?? [];
    if (code === undefined) throw new Error(`the guide has no ${file}`);
    writeFileSync(path.join(project, file), code);
  }
  const modules = path.join(project, 'node_modules');
  mkdirSync(path.join(modules, 'gatehouse'), { recursive: true });
  for (const named of packages) {
    const [name, folder] = typeof named === 'string' ? [named, named] : named;
    symlinkSync(path.join(ROOT, 'node_modules', folder), path.join(modules, name));
  }
  symlinkSync(path.join(ROOT, 'src/resource-server'), path.join(modules, 'gatehouse/lib'));
  const exports = { './resource-server': './lib/resource-server.ts' };
  writeFileSync(path.join(modules, 'gatehouse/package.json'), JSON.stringify({ exports }));
}
