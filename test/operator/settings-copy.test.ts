/** The copy of its settings that a node keeps, and the commands that use it while the file is refused. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadForCommand, loadSettings } from '../../src/config/load.ts';
import { keepCopy } from '../../src/config/settings-copy.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { operatorWith, storesOf, valueFrom } from './run-operator.ts';

describeOn([postgresServer], 'the copy of the settings that a node keeps', () => {
  const folder = temporaryDirectory('state');
  const kept = path.join(folder, '.settings-copy.yaml');
  const file = fileWith('{log: {level: warn}, mail: {from: a@b.test}}', 'kept.yaml');
  const nothingKept = { STATE_DIRECTORY: temporaryDirectory('empty-state') };
  /** The environment of a command on the machine of the node, without the stores. The default settings lack `mail.from`. */
  const machine = {
    STATE_DIRECTORY: folder,
    GATEHOUSE_CONFIG: file,
    SMTP_URL: 'smtp://localhost:1',
    ...keysOfEnvironment,
  };

  const taken = () => {
    const { copy } = loadSettings({ environment: { ...machine, DATABASE_URL: 'postgres://gatehouse:swordfish@db/g' } });
    if (copy === undefined) throw new Error('nothing to keep');
    return { copy };
  };
  const on = startSeeded({ on: 'postgres', settings: taken(), reloaded: taken });

  /** Writes a file with a typo, and returns the command with these variables. */
  const withRefusedFile = (environment: Readonly<Record<string, string>>) => {
    writeFileSync(file, '{log: {levle: warn}, mail: {from: a@b.test}}\n');
    return operatorWith({ ...machine, ...environment });
  };
  const withDatabase = (): string => {
    const storage = { database_url: storesOf(on.service).DATABASE_URL };
    return JSON.stringify({
      issuer: 'https://auth.example.test',
      server: { proxy_hops: 1 },
      mail: { from: 'a@b.test' },
      storage,
    });
  };

  it('a node keeps the text of its settings file for its own user, and no secret of the environment', () => {
    expect(statSync(kept).mode & 0o777).to.equal(0o600);
    const text = readFileSync(kept, 'utf8');
    expect(text).to.contain('log: {level: warn}').and.contain(file);
    for (const secret of ['swordfish', ...Object.values(keysOfEnvironment)]) expect(text).not.to.contain(secret);
    expect(readdirSync(folder)).to.deep.equal(['.settings-copy.yaml']);
  });

  it('a reload replaces the copy, and a refused one keeps it', async () => {
    writeFileSync(file, withDatabase());
    await on.service.reload();
    expect(readFileSync(kept, 'utf8')).to.contain('auth.example.test');
    writeFileSync(file, 'issuer: [');
    await on.service.reload().catch(() => {});
    expect(readFileSync(kept, 'utf8')).to.contain('auth.example.test');
  });

  it('while the settings file is refused, commands use the copy and say so', async () => {
    writeFileSync(file, withDatabase());
    await on.service.reload();
    const run = withRefusedFile({});
    const { email } = on.seeded.person;
    for (const words of ['accounts list', 'nodes', `show ${email}`, `revoke --account ${email} --yes`]) {
      const { exitCode, errors } = await run(words);
      expect(exitCode, words + errors).to.equal(0);
      expect(errors, words).to.contain(`${file} is refused`).and.contain(`uses ${kept}, which a node kept 20`);
    }
    const { errors } = await run('accounts suspend nobody@example.test');
    expect(errors).to.contain('Acting on https://auth.example.test');
    expect(await run('check-config')).to.include({ exitCode: 3 });
  });

  it('a copy of another settings file is not used', async () => {
    const other = fileWith('issuer: [', 'other.yaml');
    const { exitCode, errors } = await withRefusedFile({ GATEHOUSE_CONFIG: other })('accounts list');
    expect(exitCode).to.equal(2);
    expect(errors).to.contain('is the copy of another settings file');
  });

  it('the copy of an embedded deployment is in its data directory, and never is the settings file itself', () => {
    const dataDirectory = temporaryDirectory('embedded');
    const own = path.join(dataDirectory, '.settings-copy.yaml');
    const storage = `storage: {data_directory: ${dataDirectory}}\n`;
    const environment = { GATEHOUSE_CONFIG: fileWith(storage, 'embedded.yaml'), ...keysOfEnvironment };
    const { copy } = loadSettings({ environment });
    if (copy) keepCopy(copy);
    expect(readFileSync(own, 'utf8')).to.contain(storage);
    writeFileSync(environment.GATEHOUSE_CONFIG, `${storage}log: {levle: warn}\n`);
    const sentences: string[] = [];
    const report = (sentence: string) => sentences.push(sentence);
    expect(loadForCommand({ environment, mayUseDefaults: false, report }).settings.storage).to.include({
      dataDirectory,
    });
    expect(sentences.join()).to.contain(own);
    expect(loadSettings({ environment: { ...environment, GATEHOUSE_CONFIG: own } })).not.to.have.property('copy');
  });

  it('without a copy, commands that read or end use the database of the environment, and say so', async () => {
    const run = withRefusedFile({ ...nothingKept, ...storesOf(on.service) });
    for (const words of ['accounts list', `sessions end --account ${on.seeded.person.email} --yes`]) {
      const { exitCode, errors } = await run(words);
      expect(exitCode, words + errors).to.equal(0);
      expect(errors, words).to.contain('default settings').and.contain('if you use Redis, set REDIS_URL');
    }
    const { error } = await valueFrom(run, ['organizations', 'add', '--name', 'Harbour'], { exitCode: 3 });
    expect(error.problems[0].path).to.equal('log.levle');
  });

  it('without a copy and without a database in the environment, commands exit with 2', async () => {
    const { error } = await valueFrom(withRefusedFile(nothingKept), 'accounts list', { exitCode: 2 });
    expect(error.problems.map((one: { path: string }) => one.path)).to.deep.equal(['log.levle', 'DATABASE_URL']);
    expect(error.problems[1].message).to.contain(nothingKept.STATE_DIRECTORY);
  });
});
