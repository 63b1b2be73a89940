/** Several processes on one port: the system distributes connections, and processes can come and go. */
import { once } from 'node:events';
import { request } from 'node:http';
import { expect } from 'chai';
import { counted, samplesOf } from '../support/metrics.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { launchNode, type RunningNode, startNode } from './running-node.ts';

const PATH = '/.well-known/oauth-authorization-server';
const settings = 'server:\n  reuse_port: true\n';

describeOn([postgresServer, redisServer], 'processes with server.reuse_port', () => {
  const start = startsOn('postgres+redis');
  let sharing: TestService;
  let port: number;
  let nodes: RunningNode[] = [];

  /** Returns options for a process on the same port. */
  const here = () => ({
    sharing,
    settings,
    issuer: `http://localhost:${port}`,
    environment: { PORT: String(port) },
  });

  before(async () => {
    sharing = await start();
    const first = await startNode({ sharing, settings });
    ({ port } = first);
    nodes = [first, await startNode(here())];
  });
  after(() => Promise.all(nodes.map((node) => node.end('SIGKILL'))));

  /** Sends requests, each on a new connection. */
  async function ask(times: number): Promise<void> {
    for (let count = 0; count < times; count += 1) {
      const asked = request({ host: 'localhost', port, path: PATH, agent: false }).end();
      const [response] = await once(asked, 'response');
      response.resume();
      expect(response.statusCode).to.equal(200);
    }
  }
  async function answersOf({ operatorsUrl }: RunningNode): Promise<number> {
    const samples = samplesOf(await (await fetch(`${operatorsUrl}/metrics`)).text());
    const labels = `{route="${PATH}",method="GET",status="200"}`;
    return counted(samples, 'gatehouse_http_requests_total')[labels] ?? 0;
  }

  it('all processes that share a port receive requests', async () => {
    await ask(64);
    const answers = await Promise.all(nodes.map(answersOf));
    expect(Math.min(...answers), String(answers)).to.be.above(0);
    expect(answers[0]).to.equal(64 - Number(answers[1]));
  });

  it('a process without server.reuse_port cannot start on a port that others share', async () => {
    const refused = await launchNode({ ...here(), settings: '{}' });
    expect(await refused.exitCode).to.equal(1);
    expect(refused.output()).to.include('EADDRINUSE');
  });

  it('when a process on a shared port stops or a new one starts, the others keep answering', async () => {
    const [first, second] = nodes as [RunningNode, RunningNode];
    await first.end('SIGTERM');
    expect(await first.exitCode, first.output()).to.equal(0);
    const before = await answersOf(second);
    await ask(16);
    expect(await answersOf(second)).to.equal(before + 16);
    const third = await startNode(here());
    nodes = [second, third];
    await ask(64);
    expect(await answersOf(third)).to.be.above(0);
  });
});
