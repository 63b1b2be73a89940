/** Projects that install the package and compile with it, as another repository would. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { programsOfGuide } from './guide.ts';
import { programOf, ROWS } from './rows.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const PACKAGE = path.join(ROOT, 'modules/node');
export const MODULES = path.join(ROOT, 'node_modules');

export const PRESENT = path.join(MODULES, 'typescript/bin/tsc');

const run = promisify(execFile);
export const fileOf = (name: string): string => `${name.toLowerCase().replaceAll(' ', '-')}.mts`;

/** A compiler reports its errors on standard output. */
export const compile = (compiler: string, cwd: string): Promise<unknown> =>
  run(process.execPath, [compiler, '-p', '.'], { cwd }).catch(({ stdout }) => expect.fail(stdout));

/** Builds the package as `npm run pack` does, into this folder of node_modules. */
export async function build(installed: string): Promise<void> {
  mkdirSync(installed);
  const lib = path.join(installed, 'lib');
  await run(process.execPath, [PRESENT, '-p', PACKAGE, '--outDir', lib]);
  const manifest = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8'));
  writeFileSync(path.join(installed, 'package.json'), JSON.stringify({ ...manifest, type: 'commonjs' }));
  copyFileSync(path.join(PACKAGE, 'src/entry.mjs'), path.join(lib, 'resource-server.mjs'));
  copyFileSync(path.join(PACKAGE, 'src/entry.d.mts'), path.join(lib, 'resource-server.d.mts'));
}

/** Links the installed packages into a project, except `replaced`: a name and its real folder. */
export function linkPackages(project: string, replaced: Readonly<Record<string, string>>): void {
  const modules = path.join(project, 'node_modules');
  mkdirSync(path.join(modules, '@types'), { recursive: true });
  const folders = readdirSync(MODULES).filter((name) => !/^(\.|@types$|gatehouse)/.test(name));
  const types = readdirSync(path.join(MODULES, '@types')).map((name) => `@types/${name}`);
  for (const name of [...folders, ...types]) {
    if (!(name in replaced)) symlinkSync(path.join(MODULES, name), path.join(modules, name));
  }
  for (const [name, folder] of Object.entries(replaced)) {
    symlinkSync(folder, path.join(modules, name));
  }
}

export function configure(project: string, options: object, include = ['*.mts']): void {
  const usual = { noEmit: true, strict: true, noImplicitReturns: true, skipLibCheck: true };
  const compilerOptions = { ...usual, target: 'es2022', module: 'nodenext', ...options };
  writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
}

/** Programs of the guide are JavaScript, in which each variable of the environment may be missing. */
export const typedProgram = (file: string): string =>
  `declare const process: { readonly env: Readonly<Record<string, string>> };\n${programsOfGuide([file])[0]}`;

const SCHEMA = `
export declare const introspector: import('gatehouse/resource-server').Introspector;
export declare const schema: import('graphql').GraphQLSchema;
`;

/** Writes the programs of all rows, and those of the guide with these names. */
export async function writeRows(
  project: string,
  guide: readonly string[],
  replaced: Readonly<Record<string, string>> = {},
): Promise<void> {
  linkPackages(project, replaced);
  await build(path.join(project, 'node_modules/gatehouse'));
  for (const [name, row] of Object.entries(ROWS)) {
    writeFileSync(path.join(project, fileOf(name)), programOf(row));
  }
  writeFileSync(path.join(project, 'schema.d.mts'), SCHEMA);
  for (const name of guide) {
    writeFileSync(path.join(project, `guide-${name}.mts`), typedProgram(`${name}.mjs`));
  }
  configure(project, { types: ['node'] });
}
