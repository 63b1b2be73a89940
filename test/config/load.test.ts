import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { checkSettings } from '../../src/config/load.ts';
import { defaultFile, projectDirectory } from '../../src/config/settings-file.ts';
import { sections, settingsFile } from '../../src/config/settings-schema.ts';
import {
  directory,
  fileWith,
  pathsOf,
  problemsOf,
  refusalOf,
  settingsOf,
} from './configuration.ts';

describe('the settings file', () => {
  it('as shipped says what holds without any file', () => {
    expect(checkSettings({ environment: {}, file: defaultFile })).to.deep.equal(settingsOf(''));
  });

  it('as shipped shows every setting with a sentence above it', () => {
    const shipped = readFileSync(defaultFile, 'utf8');
    const everything = parse(shipped.replace(/^( *)# ([a-z_]+: \S+)$/gm, '$1$2'));
    expect(everything).to.have.all.keys(Object.keys(settingsFile.shape));
    for (const [name, section] of Object.entries(sections)) {
      expect(everything[name], name).to.have.all.keys(Object.keys(section));
    }
    for (const [setting] of shipped.matchAll(/\n.*\n *(# )?[a-z_]+: \S+$/gm)) {
      expect(setting).to.match(/^\n *# \S/);
    }
  });

  it('has the defaults the product promises', () => {
    const settings = settingsOf('');
    expect(settings.tokens).to.deep.equal({
      authorizationCodeSeconds: 600,
      accessTokenSeconds: 3600,
      machineAccessTokenSeconds: 3600,
      refreshTokenSeconds: 30 * 86_400,
      retryWindowSeconds: 60,
      absoluteAgeSeconds: 365 * 86_400,
    });
    expect(settings.limits).to.include({ clientsPerPerson: 25, apiKeysPerPerson: 25 });
    expect(settings.activity).to.deep.equal({ retentionSeconds: 365 * 86_400 });
    expect(settings).to.include({
      issuer: 'http://localhost:3000',
      isLoopback: true,
      demo: true,
    });
    expect(settings.storage.dataDirectory).to.equal(path.join(projectDirectory, 'data'));
  });

  it('may leave a heading without settings, and switch the absolute age off', () => {
    const { tokens } = settingsOf('server:\ntokens:\n  absolute_age: off\n  retry_window: 0s\n');
    expect(tokens).to.include({ absoluteAgeSeconds: undefined, retryWindowSeconds: 0 });
  });

  it('is refused with all its problems at once, each with a value and a remedy', () => {
    const yaml = `
      issuer: http://auth.example.com
      server: { port: "80" }
      tokens: { refresh_token: 30, access_token: 2d, retry_window: }
      limits: 5
      log: { level: loud }`;
    const { problems, message } = refusalOf(() => settingsOf(yaml, { PORT: 'http' }));
    expect(problems.map((problem) => problem.path)).to.have.members([
      'issuer',
      'server.port (from PORT)',
      'tokens.refresh_token',
      'tokens.access_token',
      'tokens.retry_window',
      'limits',
      'log.level',
    ]);
    expect(problems.find((problem) => problem.path === 'tokens.refresh_token')).to.deep.equal({
      path: 'tokens.refresh_token',
      value: '30',
      message: 'is not a duration from 1s to 3650d',
      remedy: 'write a whole number and a unit (s, m, h or d), such as `10m`',
    });
    expect(message)
      .to.contain('The configuration has 7 problems:')
      .and.contain(
        [
          '  log.level',
          '    value:   "loud"',
          '    problem: is not one of debug, info, warn, error, silent',
        ].join('\n'),
      );
  });

  it('is refused with an unknown key, and the name that was probably meant', () => {
    const yaml =
      'isuer: x\nserver: { prot: 1 }\ntokens: { acess_token: 1h }\nretry_window: 5s\nblue: 1';
    const remedies = Object.fromEntries(problemsOf(yaml).map(({ path, remedy }) => [path, remedy]));
    expect(remedies).to.include({
      isuer: 'did you mean `issuer`?',
      'server.prot': 'did you mean `port`?',
      'tokens.acess_token': 'did you mean `access_token`?',
      retry_window: '`retry_window` belongs under `tokens`',
    });
    expect(remedies.blue).to.match(/^remove it; known here: issuer, server,/);
  });

  it('that is not YAML is refused with line and column', () => {
    const [problem] = problemsOf('server:\n  port: [1\nlog: {}');
    expect(problem?.path).to.equal(`${path.join(directory, 'settings.yaml')}, line 3, column 1`);
    expect(pathsOf('- a list')).to.have.lengthOf(1);
    expect(pathsOf('log: *nothing')).to.have.lengthOf(1);
    expect(pathsOf('log: 1\nlog: 2')[0]).to.match(/line 2, column 1$/);
  });

  it('may be missing only where nobody named it', () => {
    const missing = path.join(directory, 'missing.yaml');
    const { problems } = refusalOf(() =>
      checkSettings({ environment: { GATEHOUSE_CONFIG: missing } }),
    );
    expect(problems).to.have.lengthOf(1);
    expect(problems[0]).to.include({ path: missing, message: 'cannot be read (ENOENT)' });
  });

  it('keeps its unknown and refused values to itself where they may be secret', () => {
    const password = 'correct-horse';
    const yaml = `
      issuer: https://me:${password}@auth.example.com
      cookie_keys: ${password}
      storage:
        database_url: mysql://gatehouse:${password}@db/gatehouse
        redis_url: ${password}`;
    const { message, problems } = refusalOf(() => settingsOf(yaml));
    expect(problems).to.have.lengthOf(4);
    expect(message).not.to.contain(password);
    expect(message).to.contain('mysql://… (not shown');
    for (const broken of [`a: 1\n ${password}: "`, `a: @${password}`, `x: 1\n"${password}"`]) {
      expect(refusalOf(() => settingsOf(broken)).message).not.to.contain(password);
    }
  });

  it('keeps the data directory where it says, or where the variable says', () => {
    const file = fileWith('storage: { data_directory: kept }');
    const keptBy = (environment: Record<string, string>) =>
      checkSettings({ environment, file }).storage.dataDirectory;
    expect(keptBy({})).to.equal(path.join(projectDirectory, 'kept'));
    expect(keptBy({ GATEHOUSE_DATA_DIR: 'typed' })).to.equal(path.resolve('typed'));
  });
});
