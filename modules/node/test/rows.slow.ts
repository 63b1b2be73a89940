/** Each row of the guide compiles in the oldest supported TypeScript and in the present one, and without any framework. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { installedPackages } from '../../../test/support/npm-packages.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { ROWS } from './rows.ts';
import { compile, configure, linkPackages, MODULES, PRESENT, typedProgram, writeRows } from './rows-project.ts';

const GUIDE = readFileSync(path.join(import.meta.dirname, '../../../docs/graphql-api.md'), 'utf8');

/** The oldest supported compiler, and types of the packages that have none. */
const PACKAGES = ['typescript@5.2.2', '@types/express@4.17.25', '@types/ws@8.18.1'];

describe('the rows of the guide in old and new compilers', () => {
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
    await writeRows(project, ['express', 'sse', 'ws', 'yoga'], types);
  });

  it('the programs contain what the guide says', () => {
    const guide = GUIDE.replaceAll(/\s+/g, ' ');
    for (const [name, { guide: texts, code }] of Object.entries(ROWS)) {
      for (const text of texts) {
        expect(guide, name).to.include(`\`${text}`);
        expect(code, name).to.include(text);
      }
    }
  });

  it('each row of the guide compiles in strict TypeScript 5.2 and 7', async () => {
    await compile(oldest, project);
    await compile(PRESENT, project);
  });

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

  it('the types need no framework, with the oldest way of resolving modules', async () => {
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
