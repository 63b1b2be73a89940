import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { settingsJsonSchema } from '../../src/config/settings-json-schema.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { operatorWith, valueFrom } from './run-operator.ts';

const production = {
  ...keysOfEnvironment,
  // Nobody answers there: whatever is found is found without asking.
  DATABASE_URL: 'postgres://gate:swordfish@127.0.0.1:1/gatehouse?sslmode=verify-full',
  REDIS_URL: 'redis+sentinel://:swordfish@127.0.0.1:1,127.0.0.1:2/mymaster',
  SMTP_URL: 'smtp://gate:swordfish@127.0.0.1:1',
};
const yaml = `
  issuer: https://auth.example.com
  server: { proxy_hops: 1, port: 4000 }
  tokens: { retry_window: 120s, absolute_age: off }
  mail: { from: Gate <gate@example.com> }`;

describe('operator check-config', () => {
  it('tells every problem of file and environment at once, as every command does', async () => {
    const file = fileWith('tokens: { acess_token: 1h }\nlog: { level: loud }\n');
    const { DATABASE_URL } = production;
    const { error } = await valueFrom(operatorWith({ DATABASE_URL }), ['check-config', file], {
      exitCode: 3,
    });
    expect(error.code).to.equal('configuration_problems');
    expect(error.problems.map((problem: { path: string }) => problem.path)).to.have.members([
      ...['tokens.acess_token', 'log.level', 'GATEHOUSE_COOKIE_KEYS', 'GATEHOUSE_TOKEN_KEYS'],
    ]);
    const printed = await operatorWith({ GATEHOUSE_CONFIG: file })(['accounts', 'list']);
    expect(printed).to.include({ exitCode: 3, output: '' });
    expect(printed.errors).to.contain('did you mean `access_token`?');
  });

  it('shows every setting as the file would say it, and where it came from', async () => {
    const file = fileWith(yaml);
    const operator = operatorWith({ ...production, PORT: '5000' });
    const value = await valueFrom(operator, ['check-config', file]);
    expect(value).to.include({
      ...{ valid: true, file, issuer: 'https://auth.example.com' },
      ...{ database: 'postgresql', tokens: 'redis', mail: 'smtp' },
    });
    expect(value.settings).to.deep.include({
      issuer: { value: 'https://auth.example.com', from: 'file' },
      'server.proxy_hops': { value: 1, from: 'file' },
      'server.port': { value: 5000, from: 'PORT' },
      'server.host': { value: 'localhost', from: 'default' },
      'tokens.retry_window': { value: '120s', from: 'file' },
      'tokens.refresh_token': { value: '30d', from: 'default' },
      'tokens.absolute_age': { value: 'off', from: 'file' },
      'mail.from': { value: 'Gate <gate@example.com>', from: 'file' },
      demo: { value: false, from: 'default' },
    });

    const { exitCode, output, errors } = await operator(['check-config', file]);
    expect({ exitCode, errors }).to.deep.equal({ exitCode: 0, errors: '' });
    expect(output).to.match(/^The settings are fine/);
    for (const [name, setting] of Object.entries<{ value: unknown; from: string }>(
      value.settings,
    )) {
      const line = output.split('\n').find((line) => line.startsWith(`${name} `));
      expect(line, name).to.contain(String(setting.value ?? 'not set'));
      expect(line, name).to.match(new RegExp(` ${setting.from}$`));
    }
  });

  it('concludes what is not stated as the service does', async () => {
    const operator = operatorWith({ PORT: '4567', GATEHOUSE_CONFIG: fileWith('') });
    const { settings } = await valueFrom(operator, ['check-config']);
    expect(settings).to.deep.include({
      issuer: { value: 'http://localhost:4567', from: 'default' },
      'server.proxy_hops': { value: 0, from: 'default' },
      'storage.database_url': { value: null, from: 'default' },
      demo: { value: true, from: 'default' },
    });
  });

  it('shows where the stores are and no password, whatever form it prints', async () => {
    const file = fileWith(yaml);
    const REDIS_URL_FILE = fileWith(production.REDIS_URL, 'redis');
    const { REDIS_URL: _, ...others } = production;
    const operator = operatorWith({ ...others, REDIS_URL_FILE });
    for (const form of [[], ['--json']]) {
      const { output } = await operator(['check-config', file, ...form]);
      expect(output).not.to.contain('swordfish');
      expect(output).to.contain('postgres://gate:***@127.0.0.1:1/gatehouse?sslmode=verify-full');
      expect(output).to.contain('redis+sentinel://:***@127.0.0.1:1,127.0.0.1:2/mymaster');
      expect(output).to.contain('smtp://gate:***@127.0.0.1:1').and.contain('REDIS_URL_FILE');
    }
  });

  it('tells of secrets how many and how long they are, and where they came from', async () => {
    const dataDirectory = path.join(temporaryDirectory('check'), 'data');
    const { GATEHOUSE_TOKEN_KEYS } = keysOfEnvironment;
    const GATEHOUSE_COOKIE_KEYS_FILE = fileWith(`${'a'.repeat(40)},${'b'.repeat(32)}`, 'cookies');
    const operator = operatorWith({
      ...{ GATEHOUSE_TOKEN_KEYS, GATEHOUSE_COOKIE_KEYS_FILE, GATEHOUSE_DATA_DIR: dataDirectory },
    });
    const { secrets } = await valueFrom(operator, ['check-config']);
    expect(secrets).to.deep.equal({
      GATEHOUSE_COOKIE_KEYS: { lengths: [40, 32], from: 'GATEHOUSE_COOKIE_KEYS_FILE' },
      GATEHOUSE_TOKEN_KEYS: { lengths: [32], from: 'GATEHOUSE_TOKEN_KEYS' },
    });
    const { output } = await operator(['check-config']);
    expect(output).to.match(/COOKIE_KEYS +2 keys of 40, 32 characters +GATEHOUSE_COOKIE_KEYS_FILE/);
    expect(output).to.match(/TOKEN_KEYS +1 key of 32 characters +GATEHOUSE_TOKEN_KEYS$/m);
    expect(output).not.to.match(/aaa|bbb|ttt/);

    const fresh = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
    const none = { lengths: [], from: 'made at the first start' };
    expect((await valueFrom(fresh, ['check-config'])).secrets).to.deep.equal({
      GATEHOUSE_COOKIE_KEYS: none,
      GATEHOUSE_TOKEN_KEYS: none,
    });
    expect(existsSync(dataDirectory), 'the data directory').to.equal(false);
  });

  it('builds the service on the settings, so that what a URL names must be there', async () => {
    const { DATABASE_URL } = production;
    const certificate = path.join(temporaryDirectory('check'), 'ca.pem');
    const environment = {
      ...production,
      DATABASE_URL: `${DATABASE_URL}&sslrootcert=${certificate}`,
    };
    const { error } = await valueFrom(operatorWith(environment), ['check-config', fileWith(yaml)], {
      exitCode: 3,
    });
    const [problem] = error.problems;
    expect(problem.path).to.equal('storage.database_url (from DATABASE_URL)');
    expect(problem.message).to.contain('ENOENT').and.contain(certificate);
    expect(problem.remedy).to.contain('read the file');
    expect(JSON.stringify(error)).not.to.contain('swordfish');
  });

  it('prints the schema of the settings file, whatever the settings are', async () => {
    const operator = operatorWith({ PORT: 'no matter' });
    const { exitCode, output } = await operator(['check-config', '--schema']);
    expect(exitCode).to.equal(0);
    expect(output).to.equal(`${JSON.stringify(settingsJsonSchema(), null, 2)}\n`);
    await valueFrom(operator, ['check-config', 'any.yaml', '--schema'], { exitCode: 2 });
  });
});
