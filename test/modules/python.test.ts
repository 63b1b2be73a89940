/** The tests of the Python module itself, with the vectors of the wire contract. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import manifest from '../../package.json' with { type: 'json' };
import { describeOn, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { environment, MODULE, python } from './python.ts';

describe('the modules for Node and Python', () => {
  const textOf = (file: string): string => readFileSync(path.join(MODULE, '..', file), 'utf8');
  const found = (file: string, pattern: RegExp): string[] =>
    [...textOf(file).matchAll(pattern)].map(([, name = '']) => name);

  it('the modules for Node and Python have the same documented settings, except for language-specific settings', () => {
    const [node = ''] = /interface IntrospectorOptions \{.*?\n\}/s.exec(textOf('node/src/introspector.ts')) ?? [];
    const options = [...node.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name = '']) => name);
    const settings = found('python/src/gatehouse/settings.py', /^ {4}(\w+): .*$/gm);
    const camel = (name: string) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
    const common = (names: string[], own: string[]) =>
      names.filter((one) => !own.includes(one)).map((one) => camel(one).replace(/(Ms|Seconds)$/, ''));
    expect(common(settings, ['ssl_context'])).to.have.members(common(options, ['onFailure', 'clock']));
    const tableOf = (file: string) => textOf(file).split('\n## Settings\n')[1] ?? '';
    for (const one of settings) expect(tableOf('python/README.md')).to.include(`\`${one}\``);
    for (const one of options.filter((one) => one !== 'clock')) {
      expect(tableOf('node/README.md')).to.include(`\`${one}\``);
    }
  });

  it('the tests of both modules run all vectors of the wire contract', () => {
    const all = readdirSync(path.join(MODULE, '../../docs/wire')).map((file) => path.basename(file, '.json'));
    expect(all).to.have.members(found('node/test/vectors.ts', /casesOf\('(.*)\.json'\)/g));
    expect(all).to.have.members(found('python/tests/test_vectors.py', /cases\("(.*)"\)/g));
  });
});

describeOn([python], 'the Python module', () => {
  it('the Python module passes its unit tests, which include the vectors of the wire contract', () => {
    const args = ['-m', 'unittest', 'discover', '-s', 'tests'];
    const run = spawnSync(required(python), args, { cwd: MODULE, env: environment });
    expect(run.status, `${run.stderr}`).to.equal(0);
    // Without its files unittest finds no tests, and reports success.
    expect(Number(/Ran (\d+) tests/.exec(`${run.stderr}`)?.[1])).to.be.at.least(25);
  });

  it('the wheel of a release contains every file of the module and its version, and each build is identical', () => {
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

describeOn([python], 'the wheel of the Python module', () => {
  /** Writes it from a copy that has other files as well, where Python takes text for ASCII. */
  function writeCopy(version: string) {
    const root = temporaryDirectory('wheel-sources');
    const copy = path.join(root, 'modules/python');
    cpSync(MODULE, copy, { recursive: true });
    cpSync(path.join(MODULE, '../../LICENSE'), path.join(root, 'LICENSE'));
    appendFileSync(path.join(copy, 'README.md'), 'Zürich');
    writeFileSync(path.join(copy, 'src/gatehouse/.DS_Store'), '');
    const env = { ...environment, LC_ALL: 'C', PYTHONUTF8: '0', PYTHONCOERCECLOCALE: '0' };
    return spawnSync(required(python), [path.join(copy, 'write_wheel.py'), version, root], { env, encoding: 'utf8' });
  }

  it('the wheel is identical on every build machine, and contains only files of the module', () => {
    const { stdout, stderr } = writeCopy('1.0.0');
    expect(stderr).to.equal('');
    const entries = JSON.parse(`${execFileSync(required(python), ['-c', READ_ENTRIES, stdout.trim()])}`);
    expect(entries.map(([file]: string[]) => file))
      .to.include('gatehouse/py.typed')
      .and.not.include('gatehouse/.DS_Store');
    for (const [file, ...facts] of entries) expect(facts, file).to.deep.equal([0, 3, '1980-01-01', '0o644']);
  });

  it('a version that is invalid in Python is refused', () => {
    expect(writeCopy('1.0.0-next').stdout).to.include('-1.0.0.dev0-py3-none-any.whl');
    for (const version of ['1.0.0-next.1', '1.0.0-rc1', '1.0', '1.0.0+build', '']) {
      const { status, stderr } = writeCopy(version);
      expect(status, version).to.equal(1);
      expect(stderr).to.equal(`${version} is neither like 1.0.0 nor like 1.0.0-next.\n`);
    }
  });
});

/** Prints what the wheel says of each file next to its content. */
const READ_ENTRIES = `
import json, sys, zipfile
print(json.dumps([
    [each.filename, each.compress_type, each.create_system, '%d-%02d-%02d' % each.date_time[:3],
     oct(each.external_attr >> 16)] for each in zipfile.ZipFile(sys.argv[1]).infolist()]))`;

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
