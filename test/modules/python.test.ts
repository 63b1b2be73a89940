/** The tests of the Python module itself, with the vectors of the wire contract. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import manifest from '../../package.json' with { type: 'json' };
import { describeOn, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { environment, MODULE, python } from './python.ts';

describeOn([python], 'the Python module', () => {
  it('the module follows the vectors of the wire contract and keeps its own rules', () => {
    const args = ['-m', 'unittest', 'discover', '-s', 'tests'];
    const run = spawnSync(required(python), args, { cwd: MODULE, env: environment });
    expect(run.status, `${run.stderr}`).to.equal(0);
    // Without its files unittest finds no tests, and reports success.
    expect(Number(/Ran (\d+) tests/.exec(`${run.stderr}`)?.[1])).to.be.at.least(25);
  });

  it('the wheel of a release has every file of the module and its version, and is always the same', () => {
    const [folder, again] = [temporaryDirectory('wheel'), temporaryDirectory('wheel')];
    const write = (to: string): string => {
      const args = [path.join(MODULE, 'write_wheel.py'), manifest.version, to];
      return execFileSync(required(python), args, { env: environment }).toString().trim();
    };
    const wheel = write(folder);
    expect(readFileSync(wheel).equals(readFileSync(write(again)))).to.equal(true);
    // Python imports from a wheel as from a folder.
    const seen = execFileSync(required(python), ['-c', READ_WHEEL], {
      env: { ...environment, PYTHONPATH: wheel },
    });
    const { version, requires, python: versions, files, wrong, from } = JSON.parse(`${seen}`);
    expect({ version, requires, versions, wrong }).to.deep.equal({
      version: manifest.version.replace('-next', '.dev0'),
      requires: ['httpx>=0.23,<1'],
      versions: '>=3.9',
      wrong: [],
    });
    expect(from).to.include('.whl');
    const sources = readdirSync(path.join(MODULE, 'src/gatehouse')).filter((file) => /^py\.typed$|\.py$/.test(file));
    expect(files.filter((file: string) => file.startsWith('gatehouse/'))).to.have.members(
      sources.map((file) => `gatehouse/${file}`),
    );
  });
});

/** Prints what an installation of the wheel would have; `wrong` are the files that differ from its record. */
const READ_WHEEL = `
import base64, hashlib, importlib.metadata, json, gatehouse
wheel = importlib.metadata.distribution('gatehouse-resource-server')
def digest(file):
    return base64.urlsafe_b64encode(hashlib.sha256(file.read_binary()).digest()).decode().rstrip('=')
print(json.dumps({
    'version': wheel.version, 'requires': wheel.requires, 'python': wheel.metadata['Requires-Python'],
    'files': [str(file) for file in wheel.files], 'from': gatehouse.__file__,
    'wrong': [str(file) for file in wheel.files if file.hash and file.hash.value != digest(file)],
}))`;
