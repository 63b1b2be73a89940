import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { loadSettings, loadSettingsWithoutSecrets } from '../../src/config/load.ts';
import { problemLines } from '../../src/config/reload.ts';
import { COMPILE_CACHE } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { checkSettings, keysOfEnvironment, refusalOf, settingsOf } from './configuration.ts';

describe('the secrets of an embedded deployment', () => {
  let dataDirectory: string;
  let file: string;
  const environment = () => ({ GATEHOUSE_DATA_DIR: dataDirectory });
  const load = () => loadSettings({ environment: environment() }).secrets;

  beforeEach(() => {
    dataDirectory = path.join(temporaryDirectory('secrets'), 'data');
    file = path.join(dataDirectory, 'secrets.json');
  });

  it('secrets are generated once, are readable by their owner only, and do not change', () => {
    const secrets = load();
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(statSync(dataDirectory).mode & 0o777).to.equal(0o700);
    expect(readdirSync(dataDirectory)).to.deep.equal(['.first-start', 'secrets.json']);
    const keys = [...secrets.cookieKeys, ...secrets.tokenKeys];
    expect(new Set(keys)).to.have.lengthOf(2);
    for (const key of keys) expect(key).to.match(/^[\w-]{43}$/);
    expect(load()).to.deep.equal(secrets);
  });

  it('processes that start at the same time get the same secrets', async () => {
    const load = new URL('../../src/config/load.ts', import.meta.url).href;
    const program = `import { loadSettings } from '${load}';
      console.log(JSON.stringify(loadSettings().secrets));`;
    const starts = Array.from({ length: 3 }, () =>
      promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
        env: { ...process.env, ...COMPILE_CACHE, ...environment() },
      }),
    );
    const printed = (await Promise.all(starts)).map(({ stdout }) => stdout);
    expect(new Set(printed)).to.have.lengthOf(1);
    expect(readdirSync(dataDirectory)).to.deep.equal(['.first-start', 'secrets.json']);
  });

  it('each secret in the environment replaces the generated one', () => {
    const { GATEHOUSE_COOKIE_KEYS, GATEHOUSE_TOKEN_KEYS } = keysOfEnvironment;
    const both = { ...environment(), ...keysOfEnvironment };
    expect(loadSettings({ environment: both }).secrets).to.deep.equal({
      cookieKeys: [GATEHOUSE_COOKIE_KEYS],
      tokenKeys: [GATEHOUSE_TOKEN_KEYS],
    });
    expect(existsSync(file)).to.equal(false);
    const made = load();
    const one = { ...environment(), GATEHOUSE_COOKIE_KEYS };
    expect(loadSettings({ environment: one }).secrets).to.deep.equal({
      cookieKeys: [GATEHOUSE_COOKIE_KEYS],
      tokenKeys: made.tokenKeys,
    });
  });

  it('a file of secrets that other users of the machine may read is refused', () => {
    const secrets = load();
    chmodSync(file, 0o640);
    const { problems, message } = refusalOf(load);
    expect(problems[0]?.path).to.equal(file);
    expect(problems[0]?.remedy).to.contain(`chmod 600 ${file}`);
    expect(message).not.to.contain(secrets.cookieKeys[0]);
    expect(refusalOf(() => checkSettings({ environment: environment() })).problems).to.deep.equal(problems);
  });

  it('damaged and too short secrets are refused, and the error does not contain them', () => {
    load();
    for (const content of ['{"cookieKeys": ["swordfish"', '{"cookieKeys":["swordfish"]}']) {
      writeFileSync(file, content);
      expect(refusalOf(load).message).to.contain(file).and.not.contain('swordfish');
    }
  });

  it('check-config generates no secrets, and a command that signs nothing needs none', () => {
    checkSettings({ environment: environment() });
    expect(existsSync(dataDirectory)).to.equal(false);
    const DATABASE_URL = 'postgres://db/gatehouse';
    loadSettingsWithoutSecrets({ environment: { DATABASE_URL } });
  });
});

describe('the problems of a reload, which all operators see', () => {
  it('an error about the settings names known settings, but no unknown name in the file, which may be a secret', () => {
    const yaml = 'server:\n  host: 7\n  port swordfish: 1\n  swordfish: 1\nserver swordfish: 1\nswordfish: 1\n';
    const lines = problemLines(refusalOf(() => settingsOf(yaml, { PORT: 'x' })));
    expect(lines.join('\n')).to.not.include('swordfish');
    expect(lines.filter((line) => line.startsWith('a name in the file ('))).to.have.length(4);
    expect(lines.filter((line) => line.startsWith('server.host ('))).to.have.length(1);
    expect(lines.filter((line) => line.startsWith('server.port (from PORT) '))).to.have.length(1);
  });
});
