/** The copy of its settings that a node keeps, and the commands that use it while the file is refused. */
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadForCommand, loadSettings } from '../../src/config/load.ts';
import { reloaded } from '../../src/config/reload.ts';
import { copyIn, keepCopy } from '../../src/config/settings-copy.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { keysOf, operatorWith, storesOf, valueFrom } from './run-operator.ts';

describeOn([postgresServer], 'the copy of the settings that a node keeps', () => {
  const folder = temporaryDirectory('state');
  const file = fileWith('{log: {level: warn}, mail: {from: a@b.test}}', 'kept.yaml');
  const kept = copyIn(folder, file);
  const warnings: string[] = [];
  const log = { warn: (_: object, text: string) => void warnings.push(text) } as never;
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
    expect(readdirSync(folder)).to.deep.equal([path.basename(kept)]);
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

  it('the copy is used if the file breaks a rule with a variable, but not if the variable is wrong', async () => {
    writeFileSync(file, withDatabase());
    await on.service.reload();
    // Each process of the systemd unit has this variable.
    const run = operatorWith({ ...machine, GATEHOUSE_OPERATORS_PORT: '3001' });
    writeFileSync(file, withDatabase().replace('"proxy_hops"', '"port":3001,"proxy_hops"'));
    const words = `revoke --account ${on.seeded.person.email} --yes`;
    const taken = await run(words);
    expect(taken.exitCode, taken.errors).to.equal(0);
    expect(taken.errors).to.contain(`uses ${kept}`);

    writeFileSync(file, withDatabase());
    const wrong = await operatorWith({ ...machine, GATEHOUSE_ISSUER: 'http://auth.example.test' })(words);
    expect(wrong.exitCode, wrong.errors).to.equal(3);
    expect(wrong.errors).to.contain('GATEHOUSE_ISSUER').and.not.contain('is refused');
  });

  it('deployments with one state folder keep their copies apart', async () => {
    writeFileSync(file, withDatabase());
    await on.service.reload();
    const GATEHOUSE_CONFIG = fileWith('{mail: {from: a@b.test}}', 'other.yaml');
    const environment = { ...machine, GATEHOUSE_CONFIG };
    const { copy } = loadSettings({ environment });
    if (copy) keepCopy(copy, log);
    const first = await withRefusedFile({})('accounts list');
    expect(first.exitCode, first.errors).to.equal(0);
    expect(first.errors).to.contain(`uses ${kept}`);
    writeFileSync(GATEHOUSE_CONFIG, 'issuer: [');
    const second = await operatorWith(environment)('accounts list');
    expect(second.errors).to.contain(`uses ${copy?.file}`);
    const unknown = await withRefusedFile({ GATEHOUSE_CONFIG: fileWith('issuer: [', 'third.yaml') })('accounts list');
    expect(unknown.exitCode).to.equal(2);
    expect(unknown.errors).to.contain('there is no copy');
  });

  it('the copy of an embedded deployment is in its data directory', () => {
    const dataDirectory = temporaryDirectory('embedded');
    const storage = `storage: {data_directory: ${dataDirectory}}\n`;
    const environment = { GATEHOUSE_CONFIG: fileWith(storage, 'embedded.yaml'), ...keysOfEnvironment };
    const own = copyIn(dataDirectory, environment.GATEHOUSE_CONFIG);
    const { copy } = loadSettings({ environment });
    if (copy) keepCopy(copy, log);
    expect(readFileSync(own, 'utf8')).to.contain(storage);
    writeFileSync(environment.GATEHOUSE_CONFIG, `${storage}log: {levle: warn}\n`);
    const sentences: string[] = [];
    const report = (sentence: string) => sentences.push(sentence);
    expect(loadForCommand({ environment, mayUseDefaults: false, report }).settings.storage).to.include({
      dataDirectory,
    });
    expect(sentences.join()).to.contain(own);
  });

  it('a node on a database server removes the copies of trials with an embedded database that had the same file', () => {
    const [configured, unnamed] = [temporaryDirectory('trial'), temporaryDirectory('default-trial')];
    const environment = { GATEHOUSE_CONFIG: fileWith('{}', 'trial.yaml'), ...keysOfEnvironment };
    const start = (GATEHOUSE_DATA_DIR: string, text: string): void => {
      writeFileSync(environment.GATEHOUSE_CONFIG, text);
      const { copy } = loadSettings({ environment: { ...environment, GATEHOUSE_DATA_DIR } });
      if (copy) keepCopy(copy, log);
    };
    for (const trial of [configured, unnamed]) start(trial, '{log: {level: warn}}');
    start(unnamed, '{storage: {database_url: "postgres://gatehouse:swordfish@db/g"}}');
    expect(readdirSync(unnamed)).to.deep.equal([]);
    expect(readdirSync(configured), 'another deployment').to.have.length(1);
    const storage = `data_directory: ${configured}, database_url: "postgres://gatehouse:swordfish@db/g"`;
    writeFileSync(environment.GATEHOUSE_CONFIG, `{storage: {${storage}}}`);
    const { copy } = loadSettings({ environment });
    if (copy) keepCopy(copy, log);
    expect(readdirSync(configured)).to.deep.equal([]);
  });

  it('a node that waits for a restart with other stores keeps the copy of those that it uses', () => {
    const given = (text: string) => {
      writeFileSync(file, text);
      return loadSettings({ environment: machine });
    };
    const current = given(withDatabase());
    const elsewhere = given(
      withDatabase().replace(/"postgres:[^"]*"/, '"postgres://gatehouse:other@db.example/other"'),
    );
    const { settings, needsRestart } = reloaded(current, elsewhere);
    expect(needsRestart).to.deep.equal(['storage.database_url']);
    expect(settings.copy).to.deep.equal(current.copy);
  });

  it('a start removes drafts that processes left a minute ago when they were killed, and no other file', () => {
    const directory = temporaryDirectory('drafts');
    const place = copyIn(directory, file);
    const [old, young] = ['0123456789ab', 'ba9876543210'].map((one) => `${place}.${one}`) as [string, string];
    for (const draft of [old, young]) writeFileSync(draft, 'half');
    const minuteAgo = new Date(Date.now() - 61_000);
    utimesSync(old, minuteAgo, minuteAgo);
    keepCopy({ file: place, text: '{}', original: file, outdated: [] }, log);
    expect(readdirSync(directory)).to.have.members([place, young].map((one) => path.basename(one)));
  });

  it('a start keeps the copy of a settings file that only another container sees', () => {
    const directory = temporaryDirectory('shared-state');
    const names = ['/etc/gatehouse/in-another-container.yaml', file].map((original) => {
      const place = copyIn(directory, original);
      keepCopy({ file: place, text: '{}', original, outdated: [] }, log);
      return path.basename(place);
    });
    expect(readdirSync(directory)).to.have.members(names);
  });

  it('without a copy, commands that read or end use the database of the environment, and say so', async () => {
    const run = withRefusedFile({ ...nothingKept, ...storesOf(on.service) });
    for (const words of ['accounts list', `sessions end --account ${on.seeded.person.email} --yes`]) {
      const { exitCode, errors } = await run(words);
      expect(exitCode, words + errors).to.equal(0);
      expect(errors, words).to.contain('default settings').and.not.contain('localhost:3000');
    }
    const { error } = await valueFrom(run, ['organizations', 'add', '--name', 'Harbour'], { exitCode: 3 });
    expect(error.problems[0].path).to.equal('log.levle');
  });

  it('without a copy and without REDIS_URL, no command says of a token that it is not active', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const run = withRefusedFile({ ...nothingKept, ...storesOf(on.service), ...keysOf(on.service) });
    const answersOn = async (redis: string) => {
      // Another node: the one that runs here writes its own row again at each heartbeat.
      await on.service.database.query(`DELETE FROM node_keys WHERE node = 'another'`);
      await on.service.database.query(`INSERT INTO node_keys
        SELECT 'another', seen_at, noted_at, cookie_keys, token_keys, state, ready_since,
          runs_with || '{"redis": "${redis}"}' FROM node_keys`);
      const one = await run(['show', accessToken, '--json']);
      const several = await run(['show', `${accessToken} ${on.seeded.person.email}`, '--json']);
      const revoked = await run(['revoke', '--token', '-', '--json'], accessToken);
      return [one, several, revoked].map(({ output }) => JSON.parse(output));
    };
    const [one, several, revoked] = await answersOn('an-id');
    expect([one.error.code, revoked.error.code]).to.deep.equal(['redis_unknown', 'redis_unknown']);
    expect(revoked.error.remedy).to.contain('REDIS_URL').and.contain('if it has none').and.contain('--account');
    expect(several.map(({ state }: { state: string }) => state)).to.deep.equal(['not_answered', 'active']);
    expect(several[0].remedy).to.contain('REDIS_URL');
    const [known, , ended] = await answersOn('none');
    expect(known[0].state).to.equal('active');
    expect(ended).to.include({ revoked: true });
  });

  it('without a copy and without a database in the environment, commands exit with 2', async () => {
    const { error } = await valueFrom(withRefusedFile(nothingKept), 'accounts list', { exitCode: 2 });
    expect(error.problems.map((one: { path: string }) => one.path)).to.deep.equal(['log.levle', 'DATABASE_URL']);
    expect(error.problems[1].message).to.contain(nothingKept.STATE_DIRECTORY);
    // DATABASE_URL mends an invalid one of the file.
    const invalid = fileWith('storage: {database_url: "postgers://db/g"}', 'invalid.yaml');
    const run = withRefusedFile({ ...nothingKept, GATEHOUSE_CONFIG: invalid });
    const refused = (await valueFrom(run, 'accounts list', { exitCode: 2 })).error;
    expect(refused.problems.map((one: { path: string }) => one.path)).to.include.members([
      'storage.database_url',
      'DATABASE_URL',
    ]);
  });
});
