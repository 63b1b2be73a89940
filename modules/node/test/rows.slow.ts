/** Each row of the guide compiles in the oldest supported TypeScript, and without any framework. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { installedPackages } from '../../../test/support/npm-packages.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { programsOfGuide } from './guide.ts';
import { programOf, ROWS } from './rows.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const PACKAGE = path.join(ROOT, 'modules/node');
const MODULES = path.join(ROOT, 'node_modules');

const PRESENT = path.join(MODULES, 'typescript/bin/tsc');
const GUIDE = readFileSync(path.join(ROOT, 'docs/graphql-api.md'), 'utf8');

/** The oldest supported compiler, and types of the packages that have none. */
const PACKAGES = ['typescript@5.2.2', '@types/express@4.17.25', '@types/ws@8.18.1'];

describe('the code in the table of GraphQL servers, in old and new compilers', () => {
  const project = temporaryDirectory('rows');
  let oldest: string;
  let installed: string;

  before(async function () {
    const found = await installedPackages(PACKAGES);
    if ('reason' in found) {
      console.error(found.reason);
      return this.skip();
    }
    installed = found.folder;
    oldest = path.join(installed, 'typescript/bin/tsc');
    const types = { '@types/ws': path.join(installed, '@types/ws') };
    linkPackages(project, types);
    await build(path.join(project, 'node_modules/gatehouse'));
    for (const [name, row] of Object.entries(ROWS)) writeFileSync(path.join(project, fileOf(name)), programOf(row));
    writeFileSync(path.join(project, 'schema.d.mts'), SCHEMA);
    for (const name of ['express', 'sse', 'ws', 'yoga']) {
      writeFileSync(path.join(project, `guide-${name}.mts`), typedProgram(`${name}.mjs`));
    }
    configure(project, { types: ['node'] });
  });

  it('the tested programs contain the code that the guide shows in its table', () => {
    const guide = GUIDE.replaceAll(/\s+/g, ' ');
    for (const [name, { guide: texts, code }] of Object.entries(ROWS)) {
      for (const text of texts) {
        expect(guide, name).to.include(`\`${text}`);
        expect(code, name).to.include(text);
      }
    }
  });

  // `npm run check` compiles the servers of the other tests with the present compiler.
  it('the code in each row of the table compiles in strict TypeScript 5.2', () => compile(oldest, project));

  it('the Express program of the guide compiles with the types of Express 4', async () => {
    const express4 = temporaryDirectory('rows-4');
    linkPackages(express4, {
      gatehouse: path.join(project, 'node_modules/gatehouse'),
      express: path.join(MODULES, 'express4'),
      '@types/express': path.join(installed, '@types/express'),
    });
    writeFileSync(path.join(express4, 'express.mts'), typedProgram('express.mjs'));
    configure(express4, { types: ['node'] });
    await compile(oldest, express4);
  });

  it('the types compile without any framework, with the oldest module resolution of TypeScript', async () => {
    const bare = temporaryDirectory('bare');
    mkdirSync(path.join(bare, 'node_modules'));
    const gatehouse = path.join(project, 'node_modules/gatehouse');
    symlinkSync(gatehouse, path.join(bare, 'node_modules/gatehouse'));
    const line = "import { createIntrospector } from 'gatehouse/resource-server';\n";
    writeFileSync(path.join(bare, 'bare.ts'), `${line}void createIntrospector;\n`);
    // The present compiler, which `packed.slow.ts` tries, does not have this way any more.
    const strictest = { skipLibCheck: false, preserveSymlinks: true, types: [] };
    configure(bare, { ...strictest, module: 'commonjs', moduleResolution: 'node10' }, ['bare.ts']);
    await compile(oldest, bare);
  });
});

const run = promisify(execFile);
const fileOf = (name: string): string => `${name.toLowerCase().replaceAll(' ', '-')}.mts`;

/** A compiler reports its errors on standard output. */
const compile = (compiler: string, cwd: string): Promise<unknown> =>
  run(process.execPath, [compiler, '-p', '.'], { cwd }).catch(({ stdout }) => expect.fail(stdout));

/** Builds the package as `npm run pack` does, into this folder of node_modules. */
async function build(installed: string): Promise<void> {
  mkdirSync(installed);
  const lib = path.join(installed, 'lib');
  await run(process.execPath, [PRESENT, '-p', PACKAGE, '--outDir', lib]);
  const manifest = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8'));
  writeFileSync(path.join(installed, 'package.json'), JSON.stringify({ ...manifest, type: 'commonjs' }));
  copyFileSync(path.join(PACKAGE, 'src/entry.mjs'), path.join(lib, 'resource-server.mjs'));
  copyFileSync(path.join(PACKAGE, 'src/entry.d.mts'), path.join(lib, 'resource-server.d.mts'));
}

/** Links the installed packages into a project, except `replaced`: a name and its real folder. */
function linkPackages(project: string, replaced: Readonly<Record<string, string>>): void {
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

function configure(project: string, options: object, include = ['*.mts']): void {
  const usual = { noEmit: true, strict: true, noImplicitReturns: true, skipLibCheck: true };
  const compilerOptions = { ...usual, target: 'es2022', module: 'nodenext', ...options };
  writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
}

/** Programs of the guide are JavaScript, in which each variable of the environment may be missing. */
const typedProgram = (file: string): string =>
  `declare const process: { readonly env: Readonly<Record<string, string>> };\n${programsOfGuide([file])[0]}`;

const SCHEMA = `
export declare const introspector: import('gatehouse/resource-server').Introspector;
export declare const schema: import('graphql').GraphQLSchema;
`;
