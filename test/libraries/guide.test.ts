/** The guide about libraries, and the packages with which its programs are run. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { BROWSER_LIBRARIES, documentedFiles, NODE_LIBRARIES, PYTHON_LIBRARIES, PYTHON_PACKAGES } from './libraries.ts';

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, file), 'utf8');
const { dependencies } = JSON.parse(read('packages/package.json'));

describe('the guide about libraries', () => {
  it('a slow test runs every program of the guide', () => {
    const scripts = [...NODE_LIBRARIES, ...BROWSER_LIBRARIES].map(({ name }) => `${name}.mjs`);
    const programs = [...scripts, ...PYTHON_LIBRARIES.map(({ name }) => `${name}.py`)];
    const documented = [...documentedFiles().keys()].filter((file) => !/^gatehouse/.test(file));
    expect(documented).to.have.members(programs);
    for (const program of programs) {
      expect(existsSync(path.join(import.meta.dirname, 'programs', program)), program).to.be.true;
    }
    const blocks = read('../../docs/libraries.md').match(/^```\w+/gm);
    expect(blocks).to.have.lengthOf(documentedFiles().size);
  });

  it('the headings of the guide name the versions that the slow test runs', () => {
    const guide = read('../../docs/libraries.md');
    const headings = guide.match(/^### .*$/gm)?.join('\n') ?? '';
    const helpers = ['esbuild', 'express', 'express-session', 'fastify', 'react', 'react-dom', 'remix-auth'];
    for (const [name, version] of Object.entries(dependencies)) {
      if (!helpers.includes(name)) expect(headings).to.include(`${name} ${version}`);
    }
    for (const locked of PYTHON_PACKAGES) {
      expect(guide).to.include(locked.replace(/(\[\w+\])?==/, ' '));
    }
  });

  it('the packages of the slow test are locked by exact version and hash, without a registry', () => {
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
