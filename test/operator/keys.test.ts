/** Operators look at keys and settings before a node runs with them. */
import { chmodSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { keyFingerprint, startHeartbeat } from '../../src/storage/heartbeat.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { operatorWith, valueFrom, variablesOf } from './run-operator.ts';

const OLD = 'an-old-key-of-the-tests-0123456789abcdef';
const NEW = 'a-new-key-of-the-tests-0123456789abcdefg';

describe('operator keys', () => {
  const { refusal, parts } = setUpOperator();
  beforeEach(async () => {
    await parts().database.query('DELETE FROM node_keys');
  });

  const operator = (...keys: string[]) =>
    operatorWith({
      ...variablesOf(parts().database),
      GATEHOUSE_COOKIE_KEYS: keys.join(','),
      GATEHOUSE_TOKEN_KEYS: keys.join(', '),
    });
  const listed = (...keys: string[]) => valueFrom(operator(...keys), 'keys');

  it('`keys list` shows the fingerprint of each key, which one signs, and nodes with different keys', async () => {
    const beat = await startHeartbeat({
      ...parts(),
      node: 'web:2',
      clock: () => Date.now(),
      log: { warn: () => {} },
      keysInUse: () => ({ cookieKeys: [NEW], tokenKeys: [NEW, OLD] }),
      describe: async () => READY_NODE,
    });
    const { keys, nodes, warnings } = await listed(OLD, NEW);
    expect(keys).to.deep.include.members([
      { kind: 'token', fingerprint: keyFingerprint(OLD), use: 'current' },
      { kind: 'cookie', fingerprint: keyFingerprint(NEW), use: 'other' },
    ]);
    expect(nodes.map(({ node }: { node: string }) => node)).to.deep.equal(['web:2']);
    expect(warnings).to.have.length(1);
    const message = `this configuration signs with the cookie key ${keyFingerprint(OLD)}, which node web:2 does not accept`;
    expect(warnings[0]).to.include({ message }).and.property('remedy').to.contain('GATEHOUSE_COOKIE_KEYS');
    const { output } = await operator(OLD, NEW)('keys list');
    expect(output).to.match(/cookie +[0-9a-f]{8} +signs\n *cookie +[0-9a-f]{8} +accepted/);
    expect(output).not.to.contain(OLD).and.not.to.contain(NEW);
    await beat.stop();
  });

  it('`keys list` without configured keys says so, and generates none', async () => {
    for (const _time of ['first', 'second']) {
      expect((await refusal('keys')).code).to.equal('keys_missing');
    }
  });
});

const production = {
  ...keysOfEnvironment,
  // No server answers at these URLs: the command must not connect.
  DATABASE_URL: 'postgres://gate:swordfish@127.0.0.1:1/gatehouse?sslmode=verify-full',
  REDIS_URL: 'redis+sentinel://:swordfish@127.0.0.1:1,127.0.0.1:2/mymaster',
  SMTP_URL: 'smtp://gate:swordfish@127.0.0.1:1',
};
const file = fileWith(
  `
  issuer: https://auth.example.com
  server: { proxy_hops: 1, port: 4000 }
  tokens: { retry_window: 120s, absolute_age: off }
  mail: { smtp_url: smtp://mail.invalid, from: Gate <gate@example.com> }`,
  'production.yaml',
);
const command = `check-config ${file}`;

describe('operator check-config', () => {
  it('`check-config`, like other commands, reports all problems of the file and the environment together', async () => {
    const wrong = fileWith('tokens: { acess_token: 1h }\nlog: { level: loud }\n');
    const run = operatorWith({ DATABASE_URL: production.DATABASE_URL, GATEHOUSE_CONFIG: wrong });
    const { error } = await valueFrom(run, `check-config ${wrong}`, { exitCode: 3 });
    expect(error.code).to.equal('configuration_problems');
    expect(error.problems.map((problem: { path: string }) => problem.path)).to.have.members([
      'tokens.acess_token',
      'log.level',
      'GATEHOUSE_COOKIE_KEYS',
      'GATEHOUSE_TOKEN_KEYS',
    ]);
    const printed = await run('organizations add --name Acme');
    expect(printed).to.include({ exitCode: 3, output: '' });
    expect(printed.errors).to.contain('remove it; allowed here: authorization_code, access_token');
  });

  it('`check-config` shows every setting in the notation of the file, with the origin of its value', async () => {
    const run = operatorWith({ ...production, PORT: '5000' });
    const value = await valueFrom(run, command);
    expect(value).to.include({ valid: true, file });
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

    const { exitCode, output, errors } = await run(command);
    expect({ exitCode, errors }).to.deep.equal({ exitCode: 0, errors: '' });
    expect(output).to.match(/^The settings are valid/);
    const all = Object.entries<{ value: unknown; from: string }>(value.settings);
    for (const [name, setting] of all) {
      const line = output.split('\n').find((line) => line.startsWith(`${name} `));
      expect(line, name).to.contain(String(setting.value ?? 'not set'));
      expect(line, name).to.match(new RegExp(` ${setting.from}$`));
    }
  });

  it('`check-config` shows the URLs of the stores without passwords, as text and as JSON', async () => {
    const { REDIS_URL, ...others } = production;
    const run = operatorWith({ ...others, REDIS_URL_FILE: fileWith(REDIS_URL, 'redis') });
    for (const form of ['', ' --json']) {
      const { output } = await run(`${command}${form}`);
      expect(output).not.to.contain('swordfish');
      expect(output).to.contain('postgres://gate:***@127.0.0.1:1/gatehouse?sslmode=verify-full');
      expect(output).to.contain('redis+sentinel://:***@127.0.0.1:1,127.0.0.1:2/mymaster');
      expect(output).to.contain('smtp://gate:***@127.0.0.1:1').and.contain('REDIS_URL_FILE');
    }
  });

  it('`check-config` warns of settings that work but are probably mistakes', async () => {
    const [cookies = '', tokens = ''] = ['c1o2o3k4i5e6', 't1o2k3e4n5s6'].map((word) =>
      Buffer.from(`${word} of the tests, at random`).toString('base64url'),
    );
    const open = fileWith(production.DATABASE_URL, 'open');
    chmodSync(open, 0o644);
    const { DATABASE_URL, ...others } = production;
    const run = operatorWith({
      ...others,
      DATABASE_URL_FILE: open,
      SMTP_URL_FILE: ' ',
      REDIS_URL: 'redis://:swordfish@nowhere.invalid:6379',
      SMTP_URL: '',
      GATEHOUSE_COOKIE_KEYS: [cookies, tokens].join(),
      GATEHOUSE_TOKEN_KEYS: tokens,
    });
    const { warnings } = await valueFrom(run, command);
    expect(warnings.map(({ path }: { path: string }) => path)).to.deep.equal([
      'GATEHOUSE_COOKIE_KEYS, GATEHOUSE_TOKEN_KEYS',
      'DATABASE_URL_FILE',
      'SMTP_URL_FILE',
    ]);
    const { output } = await run(command);
    for (const secret of [cookies, tokens, 'swordfish']) expect(output).not.to.contain(secret);
  });

  it('`check-config` also reports a store URL that names a missing file', async () => {
    const certificate = path.join(temporaryDirectory('check'), 'ca.pem');
    const DATABASE_URL = `${production.DATABASE_URL}&sslrootcert=${certificate}`;
    const run = operatorWith({ ...production, DATABASE_URL });
    const { error } = await valueFrom(run, command, { exitCode: 3 });
    const [problem] = error.problems;
    expect(problem.path).to.equal('storage.database_url (from DATABASE_URL)');
    expect(problem.message).to.contain('ENOENT').and.contain(certificate);
    expect(problem.remedy).to.contain('make the file');
    expect(JSON.stringify(error)).not.to.contain('swordfish');
  });
});
