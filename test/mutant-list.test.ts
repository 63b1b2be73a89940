/** `npm run mutants` can run every entry of the list of rules to break. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { MUTANTS } from './mutant-list.ts';

const ROOT = path.join(import.meta.dirname, '..');

describe('the list of mutants', () => {
  it('the list of mutants quotes source that occurs exactly once in its file', () => {
    const moved = MUTANTS.filter(({ file, from }) => {
      return readFileSync(path.join(ROOT, file), 'utf8').split(from).length !== 2;
    });
    expect(moved.map(({ file, from }) => `${file}: ${from}`)).to.deep.equal([]);
  });

  it('the list of mutants names only existing tests', () => {
    const named = new Set(MUTANTS.flatMap(({ tests }) => tests));
    expect([...named].filter((name) => !existsSync(path.join(ROOT, name)))).to.deep.equal([]);
  });
});
