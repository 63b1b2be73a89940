/** The guide about libraries, and the packages with which its programs are run. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { BROWSER_LIBRARIES, documentedFiles, NODE_LIBRARIES, PYTHON_LIBRARIES, PYTHON_PACKAGES } from './libraries.ts';

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, file), 'utf8');
const { dependencies } = JSON.parse(read('packages/package.json'));
const guide = read('../../docs/libraries.md');

describe('the guide about libraries', () => {
  it('a slow test runs the programs for all documented libraries', () => {
    const scripts = [...NODE_LIBRARIES, ...BROWSER_LIBRARIES].map(({ name }) => `${name}.mjs`);
    const programs = [...scripts, ...PYTHON_LIBRARIES.map(({ name }) => `${name}.py`)];
    const documented = [...documentedFiles().keys()].filter((file) => !/^gatehouse/.test(file));
    expect(documented).to.have.members(programs);
    for (const program of programs) {
      expect(existsSync(path.join(import.meta.dirname, 'programs', program)), program).to.be.true;
    }
  });

  it('the tested program of each library contains all code that the guide names for that library', () => {
    const rows = guide.split('\n').filter((line) => line.startsWith('| '));
    for (const [extension, libraries] of [
      ['mjs', [...NODE_LIBRARIES, ...BROWSER_LIBRARIES]],
      ['py', PYTHON_LIBRARIES],
    ] as const) {
      for (const { name, row: start } of libraries) {
        if (start === undefined) continue;
        const [row = '', ...others] = rows.filter((line) => line.startsWith(`| ${start}`));
        expect(others, start).to.deep.equal([]);
        const [, , needs = ''] = row.split(' | ').flatMap((cell) => cell.split(/^\| /));
        const named = [...needs.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
        const program = documentedFiles().get(`${name}.${extension}`) ?? '';
        for (const code of named) expect(program, `${start}: ${code}`).to.include(code);
      }
    }
  });

  it('the guide names the versions that the slow test runs', () => {
    const helpers = ['esbuild', 'express', 'express-session', 'fastify', 'react', 'react-dom', 'remix-auth'];
    for (const [name, version] of Object.entries(dependencies)) {
      if (!helpers.includes(name)) expect(guide).to.include(`${name} ${version}`);
    }
    for (const locked of PYTHON_PACKAGES) {
      expect(guide).to.include(locked.replace(/(\[\w+\])?==/, ' '));
    }
  });

  it('the packages of the slow test are locked by exact version and hash, and the lock file names no registry', () => {
    for (const version of Object.values(dependencies)) {
      expect(version).to.match(/^\d+\.\d+\.\d+$/);
    }
    const { packages } = JSON.parse(read('packages/package-lock.json'));
    const { '': root, ...locked } = packages;
    expect(root.dependencies).to.deep.equal(dependencies);
    for (const [folder, one] of Object.entries<Record<string, unknown>>(locked)) {
      expect(one.integrity, folder).to.match(/^sha512-/);
      expect(one.resolved, folder).to.equal(undefined);
    }
  });
});
