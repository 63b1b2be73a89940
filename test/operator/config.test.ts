/** `operator config`: the history of the settings file, and the return of an earlier text. */
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { historyEntry } from '../../src/config/kept-text.ts';
import { loadSettings } from '../../src/config/load.ts';
import { defaultFile } from '../../src/config/settings-file.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { eventually } from '../support/eventually.ts';
import { forEachDeployment, type Overrides, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { operatorWith, refusalFrom, storesOf, valueFrom } from './run-operator.ts';

const ROOT = path.join(import.meta.dirname, '../..');

describe('the settings history', () => {
  it('keeps no text with the password of a store, however its URL contains it', () => {
    const urls: readonly Record<string, string>[] = [
      { REDIS_URL: 'redis+sentinel://:hunter%322@a:1,b:2/main' },
      { DATABASE_URL: 'postgres://me:hunter22@%2Frun%2Fpostgresql/db' },
      { DATABASE_URL: 'postgres://me@db/db?password=hunter22' },
      { SMTP_URL: 'smtp://me:hunter22@mail' },
    ];
    for (const variables of urls) {
      const environment = { DATABASE_URL: 'postgres://h/d', ...keysOfEnvironment, ...variables };
      const file = fileWith('# not hunter22\nmail: { from: a@b.test }\n');
      const { text } = historyEntry(loadSettings({ environment, file }));
      expect(text, JSON.stringify(variables)).to.equal(null);
    }
  });
});

forEachDeployment('operator config', (start) => {
  const directory = temporaryDirectory('history');
  const file = path.join(directory, 'gatehouse.yaml');
  let environment: Record<string, string>;
  let found: Overrides = {};
  let service: TestService;

  const textWith = (minutes: number): string => `tokens:\n  access_token: ${minutes}m\n`;
  const run = (words: string) => operatorWith(environment)(words);
  const value = (words: string, exitCode = 0) =>
    valueFrom(operatorWith(environment), words, { exitCode });
  const latest = async () => (await value('config history'))[0];
  const reload = (message?: string) =>
    valueFrom(operatorWith(environment), ['reload', ...(message ? ['--message', message] : [])]);

  /** Writes the file, and makes the service take its text. */
  async function take(text: string, message?: string): Promise<number> {
    writeFileSync(file, text);
    found = { source: { file, text } };
    await reload(message);
    return (await latest()).number;
  }

  before(async () => {
    writeFileSync(file, textWith(10));
    const { tokens, source } = loadSettings({ environment: keysOfEnvironment, file });
    service = await start({
      settings: { tokens, ...(source && { source }) },
      reloaded: () => found,
    });
    environment = {
      ...storesOf(service),
      GATEHOUSE_CONFIG: file,
      GATEHOUSE_OPERATORS_PORT: new URL(service.operatorsUrl).port,
    };
  });

  it('`config history` lists the text of the start and of each reload once, with its message', async () => {
    // The start is recorded in the background.
    const begin = await eventually(async () => {
      const entry = await latest();
      expect(entry).to.be.an('object');
      return entry;
    });
    expect(begin).to.include({ number: 1, message: null, not_kept_because: null });
    expect(begin).to.include.keys('node', 'taken_at', 'hash').and.not.include.keys('text');
    expect(await take(textWith(10))).to.equal(1);
    expect(await take(textWith(11), 'ticket 4711')).to.equal(2);
    expect(await latest()).to.include({ message: 'ticket 4711' });
    expect(await take(textWith(11))).to.equal(2);
    expect((await run('config history')).output).to.contain('ticket 4711');
    expect((await run('config show 2')).output).to.equal(textWith(11));
    expect((await refusalFrom(operatorWith(environment), 'config show 99')).code).to.equal(
      'unknown_settings',
    );
  });

  it('`config diff` shows what changed between two texts', async () => {
    const { diff } = await value('config diff 1 2');
    expect(diff).to.contain('-  access_token: 10m\n+  access_token: 11m');
    expect((await run('config diff 2 2')).output).to.equal('The texts are the same.\n');
  });

  it('nothing is kept of a file that has a secret, and the history says why', async () => {
    const { secrets } = service.settings;
    const texts: readonly (readonly [text: string, why: string])[] = [
      ['mail: { smtp_url: "smtp://me:hunter2@mail", from: a@b.test }', 'a URL with a password'],
      ['# was redis://:hunter2@redis', 'a URL with a password'],
      [
        String.raw`mail: { smtp_url: "smtp:\x2f\x2fme:hunter2\x40mail", from: a@b.test }`,
        'a URL with a password',
      ],
      ['# postgres://h/d?password=hunter2', 'a secret'],
      ['# client_secret: hunter2', 'a secret'],
      [`# ${secrets.cookieKeys[0]}`, 'a secret'],
      [`# hunter2 ${'x'.repeat(256 * 1024)}`, 'more than 256 kB'],
    ];
    for (const [at, [text, why]] of texts.entries()) {
      const number = await take(`${text}\n`, `secret ${at}`);
      const entry = await latest();
      expect(entry.not_kept_because, text.slice(0, 80)).to.contain(why);
      const { code } = await refusalFrom(operatorWith(environment), `config show ${number}`);
      expect(code).to.equal('not_kept');
    }
    const rows = await service.database.query('SELECT * FROM settings_history');
    expect(JSON.stringify(rows)).not.to.contain('hunter2').and.not.contain(secrets.cookieKeys[0]);
  });

  it('the history says if there is no settings file', async () => {
    found = { source: { file, text: undefined } as never };
    await reload('without a file');
    expect((await latest()).not_kept_because).to.contain('there is no settings file');
  });

  it('the settings files of this repository are kept', async () => {
    const deploy = path.join(ROOT, 'deploy');
    const others = readdirSync(deploy, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('gatehouse.yaml'))
      .map((name) => path.join(deploy, name));
    for (const shipped of [defaultFile, ...others]) {
      await take(readFileSync(shipped, 'utf8'), shipped);
      expect((await latest()).not_kept_because, shipped).to.equal(null);
    }
  });

  it('the history keeps the latest 20 texts', async () => {
    for (let minutes = 20; minutes < 42; minutes += 1) await take(textWith(minutes));
    const entries = await value('config history');
    expect(entries).to.have.length(20);
    const [{ number }] = entries;
    expect((await value(`config show ${number - 19}`)).text).to.equal(textWith(22));
    expect((await refusalFrom(operatorWith(environment), 'config show 1')).code).to.equal(
      'unknown_settings',
    );
  });

  it('`config restore` writes an earlier text with the mode and owner of the file', async () => {
    const old = await take(textWith(50));
    await take(textWith(51));
    chmodSync(file, 0o640);
    if (process.getuid?.() === 0) chownSync(file, 1234, 1235);
    const { uid, gid } = statSync(file);
    const { output } = await run(`config restore ${old}`);
    expect(output).to.contain('gatehouse reload').and.not.contain('former text');
    expect(readFileSync(file, 'utf8')).to.equal(textWith(50));
    const after = statSync(file);
    expect(after.mode & 0o777).to.equal(0o640);
    expect([after.uid, after.gid]).to.deep.equal([uid, gid]);
    expect(readdirSync(directory)).to.deep.equal(['gatehouse.yaml']);
  });

  it('`config restore` keeps a text that is not in the history in a file of its own, also a broken one', async () => {
    const old = await take(textWith(52));
    const broken = 'tokens: [\n';
    writeFileSync(file, broken);
    const { copy } = await value(`config restore ${old}`);
    expect(readFileSync(copy, 'utf8')).to.equal(broken);
    expect(readFileSync(file, 'utf8')).to.equal(textWith(52));
    rmSync(copy);
  });

  it('`config restore` prints the text and exits with 1 if the file is read-only or part of a ConfigMap', async () => {
    const old = await take(textWith(53));
    await take(textWith(54));
    chmodSync(file, 0o444);
    const { exitCode, output } = await run(`config restore ${old}`);
    expect(exitCode).to.equal(1);
    expect(output).to.contain('cannot be written').and.contain(textWith(53));
    expect(readFileSync(file, 'utf8')).to.equal(textWith(54));
    expect(await value(`config restore ${old}`, 1)).to.include({ text: textWith(53) });
    chmodSync(file, 0o600);
    // As the kubelet mounts it: the file is a link through the link `..data`.
    const map = path.join(directory, 'map');
    mkdirSync(path.join(map, '..1'), { recursive: true });
    writeFileSync(path.join(map, '..1', 'gatehouse.yaml'), textWith(54));
    symlinkSync('..1', path.join(map, '..data'));
    symlinkSync('..data/gatehouse.yaml', path.join(map, 'gatehouse.yaml'));
    const before = environment;
    environment = { ...environment, GATEHOUSE_CONFIG: path.join(map, 'gatehouse.yaml') };
    expect((await run(`config restore ${old}`)).exitCode).to.equal(1);
    environment = before;
    expect(readdirSync(path.join(map, '..1'))).to.deep.equal(['gatehouse.yaml']);
  });
});
