/** One node of several processes: it starts, reloads, says how it is and ends as one. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { operatorWith, type RunOperator, valueFrom } from '../operator/run-operator.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { basic, refresh, type TestClient } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { mixedRequests } from './mixed-requests.ts';
import { launchNode, type RunningNode, startNode } from './running-node.ts';
import { startLoad } from './steady-load.ts';

const settings = (more = ''): string => `server:\n  processes: 2\n${more}`;

describeOn([postgresServer, redisServer], 'a node of several processes', () => {
  let service: TestService;
  let seeded: Seed;
  let node: RunningNode;
  let issuer: string;
  let partner: PartnerTokens;
  let operator: RunOperator;
  const tokenKeysFile = path.join(temporaryDirectory('keys'), 'token-keys');

  before(async () => {
    service = await startTestService({ deployment: 'postgres+redis' });
    seeded = await seed(service);
    writeFileSync(tokenKeysFile, service.settings.secrets.tokenKeys.join(','));
    const environment = { GATEHOUSE_TOKEN_KEYS_FILE: tokenKeysFile };
    node = await startNode({ beside: service, settings: settings(), environment });
    issuer = `http://localhost:${node.port}`;
    partner = partnerTokens(issuer, seeded);
    operator = operatorWith(node.environment);
  });
  after(async () => {
    await node?.end('SIGKILL');
    await service?.close();
  });

  const expiresIn = (): Promise<unknown> => lifetimeToldBy(node, seeded.clients.machine);

  /** Of each process: new connections reach them in turn. */
  const everywhere = <Value>(ask: () => Promise<Value>): Promise<Value[]> =>
    Promise.all(Array.from({ length: 8 }, ask));

  it('20 refreshes of one token at once bring one and the same successor', async () => {
    const client = seeded.clients.confidential;
    const { refreshToken } = await partner.tokens(client);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => refresh(issuer, client, refreshToken)),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
    expect(new Set(answers.map((answer) => tokensOf(answer).refreshToken)).size).to.equal(1);
  });

  it('adds up what its processes counted', async () => {
    const before = await issuedTokens(node);
    await everywhere(expiresIn);
    expect(await issuedTokens(node)).to.equal(before + 8);
  });

  it('`operator reload` puts settings in force in every process, under load, without a failure', async () => {
    const { accessToken } = await partner.tokens(seeded.clients.confidential);
    const about = { accessToken, session: partner.browser };
    const load = startLoad(mixedRequests(issuer, seeded, about));
    const done = { changed: ['tokens.machine_access_token'], needs_restart: [] };
    for (let turn = 1; turn <= 3; turn += 1) {
      node.writeSettings(settings(`tokens:\n  machine_access_token: ${turn}m\n`));
      // What the command does, and once the command itself.
      const answer =
        turn === 1 ? await valueFrom(operator, ['reload']) : await postReload(node.operatorsUrl);
      expect(answer).to.deep.equal(done);
      expect(new Set(await everywhere(expiresIn))).to.deep.equal(new Set([turn * 60]));
    }
    await load.more(20);
    await load.stop();
    expect(load.failures).to.deep.equal([]);
  });

  it('tells what needs a restart, and each problem with its remedy, and then changes nothing', async () => {
    node.writeSettings('server:\n  processes: 3\ntokens:\n  machine_access_token: 3m\n');
    const waiting = await operator(['reload']);
    expect(waiting.output).to.equal(
      'Settings reloaded.\nWaiting for a restart: server.processes\n',
    );
    node.writeSettings(settings('tokens:\n  machine_access_token: soon\n  colour: red\n'));
    const refused = await operator(['reload']);
    expect(refused.exitCode).to.equal(3);
    expect(refused.errors).to.include('tokens.machine_access_token').and.include('tokens.colour');
    expect(refused.errors.match(/remedy: /g)).to.have.length(2);
    expect(new Set(await everywhere(expiresIn))).to.deep.equal(new Set([180]));
  });

  it('SIGHUP does the same, and says what came of it', async () => {
    process.kill(node.pid, 'SIGHUP');
    await node.waitUntil(async () => expect(node.output()).to.include('Nothing was reloaded.'));
    expect(node.output()).to.include('problem: is not a setting');
    // The same in the log, for machines.
    expect(node.output()).to.match(/"level":50.*tokens\.colour/);

    const { tokenKeys } = service.settings.secrets;
    const { refreshToken } = await partner.tokens(seeded.clients.confidential);
    const [key = ''] = tokenKeys;
    writeFileSync(tokenKeysFile, `${'n'.repeat(40)},${readFileSync(tokenKeysFile, 'utf8')}`);
    node.writeSettings(settings('tokens:\n  machine_access_token: 4m\n'));
    process.kill(node.pid, 'SIGHUP');
    await node.waitUntil(async () => expect(node.output()).to.include('GATEHOUSE_TOKEN_KEYS'));
    expect(new Set(await everywhere(expiresIn))).to.deep.equal(new Set([240]));
    expect(node.output()).not.to.include(key);

    // Signed with the new key, which this service does not have yet.
    const client = seeded.clients.confidential;
    const answer = await refresh(issuer, client, refreshToken);
    expect(answer.status, answer.text).to.equal(200);
    const { refreshToken: successor } = tokensOf(answer);
    expect((await refresh(issuer, client, successor)).status).to.equal(200);
    expect((await refresh(service.issuer, client, successor)).status).to.equal(400);
  });

  it('replaces a process that dies, with the settings that are in force', async () => {
    const [killed = 0] = node.children();
    const startedBefore = await metric(node, 'gatehouse_start_time_seconds');
    process.kill(killed, 'SIGKILL');
    await node.waitUntil(async () => {
      const children = node.children();
      expect(children).to.have.length(2).and.not.include(killed);
      expect(node.output()).to.include('a worker ended, another takes its place');
      // That of the youngest which serves.
      const started = await metric(node, 'gatehouse_start_time_seconds');
      expect(started).not.to.deep.equal(startedBefore);
    });
    expect(new Set(await everywhere(expiresIn))).to.deep.equal(new Set([240]));
    expect((await node.readyz()).body).to.include({ status: 'ready' });
  });

  it('ends with its processes, and leaves none behind', async () => {
    const children = node.children();
    await node.end('SIGTERM');
    expect(await node.exitCode, node.output()).to.equal(0);
    for (const pid of children) expect(() => process.kill(pid, 0)).to.throw('ESRCH');
  });

  it('a refusal to start is said once, by the node', async () => {
    const refused = await launchNode({
      beside: service,
      settings: settings(),
      environment: { REDIS_URL: 'redis://127.0.0.1:1' },
    });
    expect(await refused.exitCode).to.equal(1);
    expect(refused.output().match(/a store does not answer/g)).to.have.length(1);
  });
});

/** Seconds that a new machine access token lives, as told on a connection of its own. */
async function lifetimeToldBy({ port }: RunningNode, client: TestClient): Promise<unknown> {
  const asked = request({
    ...{ host: 'localhost', port, path: '/oauth/token', method: 'POST', agent: false },
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: basic(client),
    },
  });
  asked.end('grant_type=client_credentials');
  const [response] = await once(asked, 'response');
  return ((await json(response)) as Record<string, unknown>).expires_in;
}

async function postReload(operatorsUrl: string): Promise<unknown> {
  return (await fetch(`${operatorsUrl}/reload`, { method: 'POST' })).json();
}

async function metric(node: RunningNode, name: string): Promise<number[]> {
  const text = await (await fetch(`${node.operatorsUrl}/metrics`)).text();
  const samples = text.split('\n').filter((line) => line.startsWith(name));
  return samples.map((line) => Number(line.split(' ').at(-1)));
}

async function issuedTokens(node: RunningNode): Promise<number> {
  const counts = await metric(
    node,
    'gatehouse_http_requests_total{route="/oauth/token",method="POST",status="200"',
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
