/** The list of rules that can be broken stays one that `npm run mutants` can work through. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { MUTANTS } from './mutant-list.ts';

const ROOT = path.join(import.meta.dirname, '..');

describe('rules that can be broken', () => {
  it('what is to be broken stands in its file, once', () => {
    const moved = MUTANTS.filter(({ file, from }) => {
      return readFileSync(path.join(ROOT, file), 'utf8').split(from).length !== 2;
    });
    expect(moved.map(({ file, from }) => `${file}: ${from}`)).to.deep.equal([]);
  });

  it('there are tests that should notice', () => {
    const named = new Set(MUTANTS.flatMap(({ tests }) => tests));
    expect([...named].filter((name) => !existsSync(path.join(ROOT, name)))).to.deep.equal([]);
  });
});
