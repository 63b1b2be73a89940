/** The programs of the guide for GraphQL APIs, read from the guide itself. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '../../..');

/** Returns the programs with these names: for each, the block of JavaScript after its name. */
export function programsOfGuide(files: readonly string[]): string[] {
  const text = readFileSync(path.join(ROOT, 'docs/graphql-api.md'), 'utf8');
  return files.map((file) => {
    const [, code] = new RegExp(`\`${file}\`[^]*?\`\`\`js\n([^]*?)\`\`\``).exec(text) ?? [];
    if (code === undefined) throw new Error(`the guide has no ${file}`);
    return code;
  });
}

/** Writes programs of the guide to a project. @param packages to install in the project, by their names */
export function writeGuideTo(project: string, files: readonly string[], packages: readonly string[]): void {
  for (const [at, code] of programsOfGuide(files).entries()) {
    writeFileSync(path.join(project, files[at] ?? ''), code);
  }
  const modules = path.join(project, 'node_modules');
  mkdirSync(path.join(modules, 'gatehouse'), { recursive: true });
  for (const name of packages) symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name));
  symlinkSync(path.join(ROOT, 'modules/node/src'), path.join(modules, 'gatehouse/lib'));
  const exports = { './resource-server': './lib/resource-server.ts' };
  writeFileSync(path.join(modules, 'gatehouse/package.json'), JSON.stringify({ exports }));
}
