/** One node of several processes: it starts, reloads, heals and ends as one. */
import { once } from 'node:events';
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { operatorWith, valueFrom } from '../operator/run-operator.ts';
import { basic } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { launchNode, type RunningNode, startNode } from './running-node.ts';

const settings = (more = ''): string => `server:\n  processes: 2\n${more}`;

describeOn([postgresServer, redisServer], 'a node of several processes', () => {
  const on = startSeeded({ on: 'postgres+redis' });
  let node: RunningNode;

  before(async () => {
    node = await startNode({ beside: on.service, settings: settings() });
  });
  after(() => node?.end('SIGKILL'));

  /** Seconds that a new machine token lives, as told on a connection of its own. */
  async function expiresIn(): Promise<unknown> {
    const asked = request({
      ...{ host: 'localhost', port: node.port, path: '/oauth/token', method: 'POST', agent: false },
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: basic(on.clients.machine),
      },
    });
    asked.end('grant_type=client_credentials');
    const [response] = await once(asked, 'response');
    return ((await json(response)) as Record<string, unknown>).expires_in;
  }
  /** By each process: new connections reach them in turn. */
  const toldEverywhere = async (): Promise<unknown[]> => [
    ...new Set(await Promise.all(Array.from({ length: 8 }, expiresIn))),
  ];

  it('`operator reload` puts settings in force in every process', async () => {
    node.writeSettings(settings('tokens:\n  machine_access_token: 4m\n'));
    const answer = await valueFrom(operatorWith(node.environment), ['reload']);
    expect(answer).to.deep.equal({ changed: ['tokens.machine_access_token'], needs_restart: [] });
    expect(await toldEverywhere()).to.deep.equal([240]);
  });

  it('replaces a process that dies, with the settings that are in force', async () => {
    const [killed = 0] = node.children();
    process.kill(killed, 'SIGKILL');
    await node.waitUntil(async () => {
      expect(node.children()).to.have.length(2).and.not.include(killed);
      expect(node.output()).to.include('a worker ended, another takes its place');
    });
    expect(await toldEverywhere()).to.deep.equal([240]);
  });

  it('ends with its processes, and leaves none behind', async () => {
    const children = node.children();
    await node.end('SIGTERM');
    expect(await node.exitCode, node.output()).to.equal(0);
    for (const pid of children) expect(() => process.kill(pid, 0)).to.throw('ESRCH');
  });

  it('a refusal to start is said once, by the node', async () => {
    const environment = { REDIS_URL: 'redis://127.0.0.1:1' };
    const refused = await launchNode({ beside: on.service, settings: settings(), environment });
    expect(await refused.exitCode).to.equal(1);
    expect(refused.output().match(/a store does not answer/g)).to.have.length(1);
  });
});
