import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ConfigurationProblems } from '../../src/config/problems.ts';
import { knownSettings } from '../../src/config/schema/known-settings.ts';
import { projectDirectory } from '../../src/config/settings-file.ts';
import { checkSettings, directory, fileWith, problemsOf, refusalOf, settingsOf, yamlWith } from './configuration.ts';

describe('the settings file', () => {
  it('the settings have the documented defaults', () => {
    const settings = settingsOf('{}');
    expect(settings.tokens).to.include({
      authorizationCodeSeconds: 600,
      accessTokenSeconds: 3600,
      machineAccessTokenSeconds: 3600,
      refreshTokenSeconds: 30 * 86_400,
      retryWindowSeconds: 60,
      absoluteAgeSeconds: undefined,
    });
    expect(settings.limits).to.include({ clientsPerPerson: 25, apiKeysPerPerson: 25 });
    expect(settings.activity).to.include({ retentionSeconds: 365 * 86_400 });
    expect(settings).to.include({ issuer: 'http://localhost:3000', isLoopback: true, demo: true });
    expect(settings.storage.dataDirectory).to.equal(path.join(projectDirectory, 'data'));
  });

  it('the settings file may contain an empty section, and may set or disable `tokens.absolute_age`', () => {
    const { tokens } = settingsOf('server:\ntokens:\n  absolute_age: off\n  retry_window: 0s\n');
    expect(tokens).to.include({ absoluteAgeSeconds: undefined, retryWindowSeconds: 0 });
    expect(settingsOf('tokens: { absolute_age: 365d }').tokens.absoluteAgeSeconds).to.equal(365 * 86_400);
  });

  it('an invalid settings file is refused with all problems at once, each with its value, place and remedy', () => {
    const yaml = `
      issuer: http://auth.example.com
      server: { port: "80" }
      tokens: { refresh_token: 30, access_token: 2d, retry_window: }
      limits: 5
      log: { level: loud }
      sign_in:
        providers:
          - id: a
            label: A
            issuer: nowhere
            client_id: x`;
    const { problems, message } = refusalOf(() => settingsOf(yaml, { PORT: 'http' }));
    expect(Object.fromEntries(problems.map((problem) => [problem.path, problem.line]))).to.deep.equal({
      issuer: 2,
      'server.port (from PORT)': undefined,
      'tokens.refresh_token': 4,
      'tokens.access_token': 4,
      'tokens.retry_window': 4,
      limits: 5,
      'log.level': 6,
      'sign_in.providers.0.issuer': 11,
    });
    expect(problems.find((problem) => problem.path === 'tokens.refresh_token')).to.include({
      path: 'tokens.refresh_token',
      value: '30',
      message: 'is not a duration from 1s to 3650d',
      remedy: 'write a whole number and a unit (s, m, h or d), such as `10m`',
    });
    expect(message).to.contain('The configuration has 8 problems:');
    expect(message).to.match(
      / {2}log\.level\n {4}place: {3}.*settings\.yaml, line 6\n {4}value: {3}"loud"\n {4}problem: is not one of debug, info/,
    );
  });

  it('every value that a remedy suggests is itself accepted', () => {
    let tried = 0;
    // Skip the list: its remedy names the settings of its entries.
    for (const name of [...knownSettings.keys()].filter((one) => one !== 'sign_in.providers')) {
      const [refused] = problemsOf(yamlWith(name, '{ no: value }'));
      expect(refused?.path, name).to.equal(name);
      for (const [, value = ''] of refused?.remedy.matchAll(/`([^`]+)`/g) ?? []) {
        // Accept a refusal by another rule, for the combination of the suggested value with the defaults.
        const problems = problemsIfRefused(yamlWith(name, JSON.stringify(parse(value))));
        expect(problems, value).not.to.include(`${name} ${refused?.message}`);
        tried += 1;
      }
    }
    expect(tried).to.be.above(30);
  });

  it('the error for a YAML mistake names the line where it begins, and the remedy', () => {
    const GENERAL_REMEDY = 'correct that line; put a text with special characters into quotes';
    for (const [yaml, line, remedy] of [
      ['issuer: a\nlog: {}\nissuer: b\n', 3, 'the setting is also in an earlier line: remove one of the two'],
      ['log:\n\tlevel: info\n', 2, 'indent the line with spaces'],
      ['demo: true\nissuer: "https://a\nlog:\n  level: info\n', 2, 'write the quote that closes it, on the same line'],
      [
        'log: {level: info\nserver:\n  port: 1\n',
        1,
        'close the bracket that begins here, or indent all lines below it',
      ],
      ['mail:\n  from: a: b\n', 2, 'put a value with `: ` into quotes, or indent the next line as this one'],
      // A closed quote or bracket above is not where these begin.
      ['issuer: "https://a"\nserver\nlog: {}\n', 2, GENERAL_REMEDY],
    ] as const) {
      const [problem, ...others] = problemsOf(yaml);
      expect(problem?.path, yaml).to.contain(`, line ${line}, column`);
      expect(problem?.remedy, yaml).to.equal(remedy);
      expect(others).to.deep.equal([]);
    }
  });

  it('the error for a YAML mistake shows no value, because it may be a password', () => {
    for (const value of ['!swordfish', '|swordfish', '>swordfish', '"a" swordfish', '@swordfish', '*swordfish']) {
      const [problem] = problemsOf(`mail:\n  smtp_url: ${value}\n`);
      expect(problem?.message, value).to.match(/^(is not YAML|has an alias)/);
      expect(JSON.stringify(problem), value).not.to.contain('swordfish');
    }
  });

  it('a settings file that is not in UTF-8 is refused, with the line', () => {
    const file = fileWith('');
    writeFileSync(file, Buffer.from('log: {}\nbrand:\n  name: Lagerhaus K\xf6ln\n', 'latin1'));
    const [problem] = refusalOf(() => checkSettings({ environment: {}, file })).problems;
    expect(problem).to.include({ path: `${file}, line 3`, message: 'is not in UTF-8' });
  });

  it('the settings file may be missing only if no environment variable names it', () => {
    const missing = path.join(directory, 'missing.yaml');
    const { problems } = refusalOf(() => checkSettings({ environment: { GATEHOUSE_CONFIG: missing } }));
    expect(problems).to.have.lengthOf(1);
    expect(problems[0]).to.include({ path: missing, message: 'cannot be read (ENOENT)' });
  });

  it('an error about the settings shows no unknown or refused value that may be a secret', () => {
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
    expect(message).to.contain('mysql://… (hidden, because');
    for (const broken of [`a: 1\n ${password}: "`, `a: @${password}`, `x: 1\n"${password}"`]) {
      expect(refusalOf(() => settingsOf(broken)).message).not.to.contain(password);
    }
  });

  it('a relative data directory is resolved against the project if set in the file, and against the working directory if set in the variable', () => {
    const file = fileWith('storage: { data_directory: kept }');
    const directoryWith = (environment: Record<string, string>) =>
      checkSettings({ environment, file }).storage.dataDirectory;
    expect(directoryWith({})).to.equal(path.join(projectDirectory, 'kept'));
    expect(directoryWith({ GATEHOUSE_DATA_DIR: 'typed' })).to.equal(path.resolve('typed'));
  });
});

/** Returns an empty list if the file is accepted. */
function problemsIfRefused(yaml: string): string[] {
  try {
    settingsOf(yaml);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationProblems)) throw error;
    return error.problems.map(({ path, message }) => `${path} ${message}`);
  }
}
