/** The tests of the Python module itself, with the vectors of the wire contract. */
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { describeOn, required } from '../support/requirements.ts';
import { environment, MODULE, python } from './python.ts';

describeOn([python], 'the Python module', () => {
  it('the module follows the vectors of the wire contract and keeps its own rules', () => {
    const args = ['-m', 'unittest', 'discover', '-s', 'tests'];
    const run = spawnSync(required(python), args, { cwd: MODULE, env: environment });
    expect(run.status, `${run.stderr}`).to.equal(0);
    // Without its files unittest finds no tests, and reports success.
    expect(Number(/Ran (\d+) tests/.exec(`${run.stderr}`)?.[1])).to.be.at.least(25);
  });
});
