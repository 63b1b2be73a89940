import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import { userInfo } from 'node:os';
import { expect } from 'chai';
import { ConfigurationProblems } from '../../src/config/problems.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { operatorWith, type RunOperator, storesOf, valueFrom } from '../operator/run-operator.ts';
import { freePort } from '../support/programs.ts';
import { type Overrides, startsOn, type TestService } from '../support/service.ts';
import { providerSettings } from '../support/upstream.ts';

const provider = (id: string) => providerSettings({ id, label: id, issuer: `https://${id}.example` });

describe('operator reload', () => {
  const start = startsOn();
  const providers = [provider('one'), provider('two')] as const;
  let found: () => Overrides;
  let operator: RunOperator;
  let service: TestService;
  let operatorsUrl: string;

  const operatorAt = (port: string | number): RunOperator => operatorWith({ GATEHOUSE_OPERATORS_PORT: String(port) });

  before(async () => {
    service = await start({ settings: { signIn: { providers } }, reloaded: () => found() });
    ({ operatorsUrl } = service);
    operator = operatorAt(new URL(operatorsUrl).port);
  });

  // The first test: the node has not reloaded yet.
  it('a dry run lists what a reload would change, in the format of a real reload, and changes nothing', async () => {
    found = () => ({ tokens: { accessTokenSeconds: 60 }, server: { reusePort: true } });
    for (const _time of ['first', 'second']) {
      expect(await valueFrom(operator, 'reload --dry-run')).to.deep.equal({
        changed: ['tokens.access_token'],
        needs_restart: ['server.reuse_port'],
        values: { 'tokens.access_token': ['1h', '1m'], 'server.reuse_port': ['false', 'true'] },
      });
    }
    expect((await operator('reload --dry-run')).output).to.equal(
      'Dry run, nothing was reloaded. After a reload:\nNow in force: tokens.access_token\n' +
        'Takes effect at the next start: server.reuse_port\n' +
        'tokens.access_token: 1h → 1m\nserver.reuse_port: false → true\n',
    );
    const rows = await service.database.query('SELECT FROM lasting_numbers WHERE reload_number > 0');
    expect(rows).to.deep.equal([]);
    const nodes = await service.database.query("SELECT runs_with->'reload' AS reload FROM node_keys");
    expect(nodes).to.deep.equal([{ reload: { request: 0 } }]);
  });

  it('a dry run shows no secret: neither keys, nor passwords in URLs, nor the secret of a provider', async () => {
    const SECRET = 'CORRECT-horse-battery';
    found = () => ({
      secrets: { tokenKeys: [SECRET.padEnd(40, 'x')] },
      mail: { smtpUrl: `smtp://gate:${SECRET}@mail.example.test`, from: 'Gate <gate@example.test>' },
      storage: { redisUrl: `redis://:${SECRET}@127.0.0.1:1` },
      signIn: { providers: [{ ...providers[0], clientSecret: SECRET }] },
    });
    const { output } = await operator('reload --dry-run');
    expect(output).to.contain('GATEHOUSE_TOKEN_KEYS').and.contain('sign_in.providers').and.contain('mail.smtp_url');
    expect(output).to.contain('mail.smtp_url: none → smtp://gate:***@mail.example.test');
    const { values } = await valueFrom(operator, 'reload --dry-run');
    expect(values).not.to.include.keys('GATEHOUSE_TOKEN_KEYS', 'sign_in.providers');
    expect(output + JSON.stringify(values)).not.to.contain(SECRET);
  });

  it('`reload` names the changed settings, and those that need a restart', async () => {
    found = () => ({ tokens: { machineAccessTokenSeconds: 180 } });
    const changed = ['tokens.machine_access_token'];
    const { nodes, ...taken } = await valueFrom(operator, ['reload']);
    expect(taken).to.deep.equal({ changed, needs_restart: [] });
    expect(nodes).to.have.length(1);
    found = () => ({ tokens: { machineAccessTokenSeconds: 180 }, server: { reusePort: true } });
    const { output } = await operator(['reload']);
    expect(output).to.equal('Settings reloaded.\nTakes effect at the next start: server.reuse_port\n');
  });

  it('a reload that changes settings leaves one audit entry, with their names and without their values', async () => {
    found = () => ({ tokens: { machineAccessTokenSeconds: 51_357 }, server: { reusePort: true } });
    await operator(['reload', '--reason', 'ticket 4711']);
    await operator(['reload']);
    const entries = await service.database.query<{ actor: string; details: object }>(
      "SELECT actor, details, operator, reason FROM activity WHERE action = 'settings_reloaded' ORDER BY id DESC",
    );
    const [{ node, settings }] = (await valueFrom(operatorWith(storesOf(service)), 'nodes')).nodes;
    const waiting = ['server.reuse_port'];
    const details = { node, changed: ['tokens.machine_access_token'], needs_restart: waiting, settings };
    const [entry, announced, ...first] = entries;
    const by = { actor: 'operator', operator: userInfo().username, reason: 'ticket 4711' };
    expect(entry).to.deep.equal({ ...by, details });
    // The others are those of the test before.
    expect(announced?.details).to.deep.include({ changed: [], needs_restart: waiting });
    expect(first).to.have.length(1);
    const { output } = await operatorWith(storesOf(service))('audit --action settings_reloaded');
    expect(output).to.contain('Settings reloaded').and.contain('tokens.machine_access_token');
    expect(output + JSON.stringify(entries)).not.to.contain('51357');
  });

  it('`reload` prints each problem with its remedy', async () => {
    const problem = { message: 'is not a setting', remedy: 'Remove it.' };
    found = () => {
      throw new ConfigurationProblems([
        { path: 'tokens.colour', value: 'red', ...problem },
        { path: 'tokens.shape', ...problem },
      ]);
    };
    const { exitCode, errors } = await operator(['reload']);
    expect(exitCode, errors).to.equal(3);
    expect(errors).to.include('tokens.colour').and.include('red').and.include('tokens.shape');
    expect(errors.match(/remedy: /g)).to.have.length(2);
    expect(await fetch(`${operatorsUrl}/reload`, { method: 'POST' })).to.include({ status: 422 });
  });

  it('`reload` authenticates with the cookie keys if other machines can reach the listener', async () => {
    found = () => ({});
    const server = { operatorsHost: '0.0.0.0' };
    const keys = ['c'.repeat(32), 'o'.repeat(32)] as const;
    const { operatorsUrl: url } = await start({
      settings: { server, secrets: { cookieKeys: keys } },
      reloaded: () => found(),
    });
    const { port } = new URL(url);
    const ask = (headers = {}) => fetch(`http://127.0.0.1:${port}/reload`, { method: 'POST', headers });
    for (const headers of [{}, { authorization: 'Bearer x' }, { authorization: 'Bearer ' }]) {
      const { status, headers: answered } = await ask(headers);
      expect(status).to.equal(401);
      expect(answered.get('www-authenticate')).to.equal('Bearer');
    }
    const environment = { ...keysOfEnvironment, GATEHOUSE_OPERATORS_PORT: port };
    const file = fileWith('server:\n  operators_host: 0.0.0.0\n');
    const reload = (cookieKeys: string) =>
      valueFrom(
        operatorWith({
          ...environment,
          GATEHOUSE_CONFIG: file,
          GATEHOUSE_COOKIE_KEYS: cookieKeys,
        }),
        ['reload'],
        { exitCode: cookieKeys.includes('c') ? 0 : 1 },
      );
    // One key in common is enough, as during a rotation of the keys.
    expect(await reload(`${'n'.repeat(32)},${'c'.repeat(32)}`)).to.have.property('changed');
    expect((await reload('n'.repeat(32))).error.code).to.equal('keys_differ');
  });

  it('`reload` does not mistake another server on the port for Gatehouse, whatever status it answers', async () => {
    let status = 0;
    const other = createServer((_request, response) => response.writeHead(status).end('{}'));
    const port = await freePort();
    await new Promise<void>((resolve) => other.listen(Number(port), 'localhost', resolve));
    for (status of [200, 401, 404, 422, 500]) {
      const { error } = await valueFrom(operatorAt(port), ['reload'], { exitCode: 1 });
      expect(error.code, `${status}`).to.equal('not_gatehouse');
    }
    await new Promise((resolve) => other.close(resolve));
  });

  it('`reload` reports that no server answers or that the port is unknown, and what to do', async () => {
    const port = await freePort();
    const { error } = await valueFrom(operatorAt(port), ['reload'], { exitCode: 1 });
    expect(error.code).to.equal('not_running');
    expect(error.message).to.include(port);
    const requests: unknown[] = [];
    const note = (request: unknown) => void requests.push(request);
    subscribe('http.client.request.start', note);
    const unknown = await valueFrom(operatorAt(0), ['reload'], { exitCode: 1 });
    unsubscribe('http.client.request.start', note);
    expect(requests, 'Node sends what is for port 0 to port 80').to.deep.equal([]);
    expect(unknown.error.code).to.equal('not_running');
    expect(unknown.error.remedy).to.include('SIGHUP');
  });
});
