/** `gatehouse nodes` lists the nodes, and awaits them. The doctor's comparison is in test/doctor/breaks.slow.ts. */
import { expect } from 'chai';
import packageFile from '../../package.json' with { type: 'json' };
import { TIMEOUT_FACTOR } from '../../src/operator/registries.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { listNodes } from '../../src/storage/nodes.ts';
import { environmentOf } from '../doctor/behind-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { addFrozenNode } from '../support/ready-node.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { expectWrongUsage, operatorWith, type RunOperator, valueFrom } from './run-operator.ts';

const { version } = packageFile;

describeOn([postgresServer, redisServer], 'operator nodes', () => {
  const start = startsOn('postgres+redis');
  let first: TestService;
  let second: TestService;
  let run: RunOperator;
  let names: readonly string[];

  const nameOf = async (service: TestService): Promise<string> => {
    const nodes = await listNodes(service.database);
    const port = `:${service.settings.server.port}`;
    return nodes.find(({ node }) => node.endsWith(port))?.node ?? '';
  };

  before(async () => {
    first = await start();
    const redisUrl = await freshRedisUrl();
    const settings = { tokens: { accessTokenSeconds: 600 }, storage: { redisUrl } };
    second = await start({ sharing: first, settings });
    run = operatorWith(environmentOf(first));
    names = await Promise.all([first, second].map(nameOf));
  });

  const addFrozen = (node: string, seconds: number) => addFrozenNode(first.database, names[0] ?? '', node, seconds);
  const removeNodes = () => first.database.query("DELETE FROM node_keys WHERE node LIKE 'frozen:%'");

  it('`nodes` lists the version and state of each node, and when it became ready', async () => {
    const { nodes } = await valueFrom(run, 'nodes');
    expect(nodes.map(({ node }: { node: string }) => node)).to.have.members(names);
    for (const node of nodes) {
      expect(node).to.include({ state: 'ready', version });
      expect(Date.parse(node.ready_since)).to.be.at.most(Date.parse(node.last_heartbeat));
    }
    expect((await run('nodes')).output).to.contain('READY SINCE');
    await expectWrongUsage(run, ['nodes --wait 0', 'nodes --wait 1 --within soon']);
  });

  it('a stalled node is listed as silent after half a minute', async () => {
    await addFrozen('frozen:1', 31);
    const { nodes } = await valueFrom(run, 'nodes');
    expect(nodes[0]).to.include({ node: 'frozen:1', state: 'silent' });
    await removeNodes();
  });

  it('`nodes --wait` waits until every node sends a new heartbeat, and names each node that sends none', async () => {
    await addFrozen('frozen:2', 5);
    const late = await run('nodes --wait 3 --within 3s');
    expect(late.exitCode).to.equal(1);
    expect(late.output).to.contain('of 3 node(s) became ready');
    expect(late.output).to.match(/frozen:2\s+STATE +ready\s(?:.*\n){2} *LAST HEARTBEAT +\d+ s ago\n/);
    const waiting = valueFrom(run, 'nodes --wait 2 --within 1m');
    // A reload is announced immediately, not only with the next heartbeat.
    await Promise.all([first, second].map((service) => service.apply(service.settings)));
    expect((await waiting).nodes).to.have.length(3);
    await removeNodes();
  });

  it('`nodes --wait` ends at its time limit even if the database hangs for longer', async () => {
    const server = await startPostgresServer();
    server.pause();
    const database = await openDatabase({ databaseUrl: server.url, dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR });
    // Has the time limits of other commands.
    const hanging = database.query('SELECT 1').catch(() => {});
    try {
      const waiting = operatorWith({ DATABASE_URL: server.url })('nodes --wait 1 --within 1s');
      const first = await Promise.race([hanging.then(() => 'the query'), waiting.then(() => 'nodes --wait')]);
      expect(first).to.equal('nodes --wait');
      const { exitCode, output } = await waiting;
      expect(exitCode).to.equal(1);
      expect(output).to.match(/Only 0 of 1 node\(s\) became ready within 1 s.*The database cannot be used/s);
    } finally {
      server.resume();
      await hanging;
      await database.close();
    }
  });

  it('`nodes` lists a stopping node as leaving, and no longer lists a stopped node', async () => {
    await second.leave();
    const stateOfSecond = async () => (await listNodes(first.database)).find(({ node }) => node === names[1])?.state;
    await eventually(async () => expect(await stateOfSecond()).to.equal('leaving'));
    await second.close();
    expect(await stateOfSecond()).to.equal(undefined);
    const missing = await run('nodes --wait 2 --within 3s');
    expect(missing.output).to.match(/Only [01] of 2 node\(s\) became ready within 3 s/);
  });
});
