/** `operator reload` on several nodes: each reads its own file, and the command names their answers. */
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { loadSettings } from '../../src/config/load.ts';
import { listNodes } from '../../src/storage/nodes.ts';
import { latestReloadRequest, requestReload } from '../../src/storage/reload-requests.ts';
import { keysOfEnvironment } from '../config/configuration.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { refuseChanges } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { addFrozenNode } from '../support/ready-node.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Overrides, startsOn, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const SECRET = 'CORRECT-horse-battery';

describeOn([postgresServer, redisServer], 'a reload of several nodes', () => {
  const start = startsOn('postgres+redis');
  const directory = temporaryDirectory('reload');
  let first: TestService;
  let second: TestService;
  let changesOfFirst: Overrides = {};

  const fileOf = (name: string): string => path.join(directory, `${name}.yaml`);
  /** Replaces the file of a node; its access tokens are valid for this many minutes. */
  const write = (name: string, minutes: number, more = ''): void =>
    writeFileSync(fileOf(name), `tokens:\n  access_token: ${minutes}m\n${more}`);
  function read(name: string): Overrides {
    return { tokens: loadSettings({ environment: keysOfEnvironment, file: fileOf(name) }).tokens };
  }
  /** @param changes settings that a reload finds in addition to the file. */
  const node = (name: string, sharing?: TestService, changes: () => Overrides = () => ({}), reloadWaitMs = 60_000) =>
    start({
      reloadWaitMs,
      settings: { ...read(name), ...(sharing && { issuer: sharing.issuer }) },
      reloaded: () => ({ ...read(name), ...changes() }),
      ...(sharing && { sharing }),
    });
  const portOf = (service: TestService) => `:${service.settings.server.port}`;
  const rowOf = async (service: TestService) =>
    (await listNodes(first.database)).find((row) => row.node.endsWith(portOf(service)));
  const secondsOf = async (service: TestService) => (await rowOf(service))?.runsWith.settings['tokens.access_token'];
  const reload = (exitCode = 0, service = first, words: readonly string[] = ['reload']) =>
    valueFrom(operatorFor(service), words, { exitCode });
  const removeOthers = () => first.database.query("DELETE FROM node_keys WHERE node LIKE 'other:%'");

  /** A negative number of seconds adds a node that stays. */
  const addNode = (name: string, seconds: number) => addFrozenNode(first.database, portOf(first), name, seconds);

  function writeAll(): void {
    for (const name of ['first', 'second', 'third']) write(name, 10);
  }

  before(async () => {
    writeAll();
    first = await node('first', undefined, () => changesOfFirst);
    second = await node('second', first);
  });
  // What a test leaves behind, also a failed one, must not change the next.
  beforeEach(() => {
    writeAll();
    changesOfFirst = {};
  });
  afterEach(removeOthers);

  it('`reload` reaches every node, and each node reads its own settings file', async () => {
    write('first', 11);
    write('second', 12);
    const { changed, nodes } = await reload(0, first, ['reload']);
    expect(changed).to.deep.equal(['tokens.access_token']);
    expect(nodes.map(({ taken }: { taken: boolean }) => taken)).to.deep.equal([true, true]);
    expect(await secondsOf(first)).to.equal('11m');
    expect(await secondsOf(second)).to.equal('12m');
    const listed = await valueFrom(operatorFor(first), 'nodes');
    expect(new Set(listed.nodes.map(({ settings }: { settings: string }) => settings)).size).to.equal(2);
    expect(listed.nodes[0].last_reload).to.include.keys('at', 'request');
    expect((await operatorFor(first)('nodes')).output)
      .to.contain('LAST RELOAD')
      .and.contain('taken');
  });

  it('the audit entry of each node names the operator and the reason of `reload`', async () => {
    write('first', 13);
    write('second', 14);
    await reload(0, first, ['reload', '--reason', 'ticket 4711']);
    const operator = userInfo().username;
    const expectEntry = (service: TestService, reason: string | null) =>
      eventually(async () => {
        const [entry] = await first.database.query(
          `SELECT operator, reason FROM activity WHERE action = 'settings_reloaded' AND details->>'node' = $1
            ORDER BY id DESC LIMIT 1`,
          [(await rowOf(service))?.node],
        );
        expect(entry).to.deep.equal({ operator, reason });
      });
    for (const service of [first, second]) await expectEntry(service, 'ticket 4711');
    // A reason belongs to one request only.
    write('second', 12);
    await reload();
    await expectEntry(second, null);
  });

  it('`reload` exits with 1 and names the node that refused its file, without values of the file', async () => {
    const former = await secondsOf(second);
    write('first', 13);
    write('second', 14, `${SECRET}: 1\nstorage:\n  redis_url: http://me:${SECRET}@db\n`);
    const { nodes } = await reload(1);
    const refused = nodes.filter(({ taken }: { taken: boolean }) => !taken);
    expect(refused).to.have.length(1);
    expect(refused[0].node).to.contain(portOf(second));
    expect(refused[0].text).to.contain('storage.redis_url').and.contain('second.yaml, line 3').and.not.contain(SECRET);
    expect(await secondsOf(first)).to.equal('13m');
    expect(await secondsOf(second))
      .to.equal(former)
      .and.not.equal('14m');
    const rows = await first.database.query('SELECT runs_with::text AS text FROM node_keys');
    expect(JSON.stringify(rows)).not.to.contain(SECRET);
    expect((await operatorFor(first)('nodes')).output).to.contain('refused');
  });

  it('`reload` contacts no other node if this node refuses its settings, or cannot start with them', async () => {
    const { number } = await latestReloadRequest(first.database);
    write('first', 15, 'colour: red\n');
    const { error: refused } = await reload(3);
    expect(refused.problems[0].path).to.equal('colour');
    write('first', 13);
    changesOfFirst = { mail: { smtpUrl: 'nowhere', from: '' } };
    const { error } = await reload(1);
    expect(error.code).to.equal('not_reloaded');
    expect((await rowOf(first))?.runsWith.reload?.problems).to.deep.equal(['its log has the cause']);
    expect((await latestReloadRequest(first.database)).number).to.equal(number);
  });

  it('`reload` makes each node reload once', async () => {
    const count = (service: TestService) =>
      service.logLines.filter((line) => line.includes('"settings reloaded"')).length;
    const before = [count(first), count(second)];
    await reload();
    expect([count(first), count(second)]).to.deep.equal(before.map((one) => one + 1));
  });

  it('`reload` reaches every node after the restore of an older backup', async () => {
    write('second', 18);
    await first.database.query('UPDATE lasting_numbers SET reload_number = 1');
    await reload();
    expect(await secondsOf(second)).to.equal('18m');
  });

  it('a node that could not store its settings retries at its next heartbeats', async () => {
    const { database } = first;
    const stores = 'UPDATE OF refresh_lifetime_seconds ON lasting_numbers';
    const accept = await refuseChanges(database, stores, "EXCEPTION 'away' USING ERRCODE = '57P03'");
    write('second', 17, '  refresh_token: 31d\n');
    let request = 0;
    try {
      ({ number: request = 0 } = (await requestReload(database)) ?? {});
      await eventually(async () => expect((await rowOf(second))?.runsWith.reload).to.have.property('problems'));
      expect((await rowOf(second))?.runsWith.reload?.request).to.be.below(request);
    } finally {
      await accept();
    }
    await eventually(async () => expect((await rowOf(second))?.runsWith.reload).to.include({ request }));
    expect(await secondsOf(second)).to.equal('17m');
  });

  it('two simultaneous reloads both report every node', async () => {
    write('first', 17);
    write('second', 18);
    const [one, other] = await Promise.all([reload(0, first), reload(0, second)]);
    for (const { nodes } of [one, other]) expect(nodes).to.have.length(2);
    expect(await secondsOf(first)).to.equal('17m');
    expect(await secondsOf(second)).to.equal('18m');
  });

  it('`reload` names silent nodes, which must get SIGHUP', async () => {
    await addNode('other:silent', 40);
    const { output, exitCode } = await operatorFor(first)('reload');
    expect(exitCode).to.equal(1);
    expect(output).to.match(/other:silent is silent.*SIGHUP/);
    expect(output).to.contain(`${(await rowOf(second))?.node} has taken its settings`);
  });

  it('`reload` stops waiting for a node that dies meanwhile, and names it', async () => {
    await addNode('other:dying', 27);
    const { nodes } = await reload(1);
    const dead = nodes.find((one: { node: string }) => one.node === 'other:dying');
    expect(dead.text).to.contain('is silent');
  });

  it('`reload` names a running node that does not answer in time', async () => {
    await addNode('other:mute', -600);
    const third = await node('third', first, () => ({}), 1_000);
    try {
      const { nodes } = await reload(1, third);
      const mute = nodes.find((one: { node: string }) => one.node === 'other:mute');
      expect(mute).to.include({ taken: false }).and.property('text').contains('has not answered');
      const own = nodes.find((one: { node: string }) => one.node.endsWith(portOf(third)));
      expect(own).to.include({ taken: true });
    } finally {
      await third.close();
    }
  });

  it('`reload` ends at once if the node of this machine is stopped while it waits', async () => {
    await addNode('other:mute', -600);
    // Longer than a test may take.
    const third = await node('third', first, () => ({}), 600_000);
    const waiting = operatorFor(third)(['reload', '--json']);
    try {
      await eventually(async () =>
        expect((await rowOf(second))?.runsWith.reload).to.deep.include({
          request: (await rowOf(third))?.runsWith.reload?.request,
        }),
      );
    } finally {
      await third.close();
    }
    const { exitCode, output } = await waiting;
    expect(exitCode).to.equal(1);
    expect(output).to.contain('has not answered');
  });

  it('a node that starts while a reload is requested carries out this reload, and answers the request', async () => {
    write('third', 19);
    const starting = node('third', first);
    // The node has read the former text.
    write('third', 20);
    const { number: request = 0 } = (await requestReload(first.database)) ?? {};
    const third = await starting;
    try {
      await eventually(async () => expect((await rowOf(third))?.runsWith.reload?.request).to.equal(request));
      expect(await secondsOf(third)).to.equal('20m');
      const { nodes } = await reload();
      expect(nodes).to.have.length(3);
    } finally {
      await third.close();
    }
  });

  it('a node that starts long after a request for a reload does not reload', async () => {
    await first.database.query('UPDATE lasting_numbers SET reload_number = reload_number - 600000');
    const third = await node('third', first);
    try {
      await eventually(async () => expect((await rowOf(third))?.runsWith.reload?.request).to.be.greaterThan(0));
      expect((await rowOf(third))?.runsWith.reload).not.to.have.property('at');
    } finally {
      await third.close();
    }
  });
});

describeOn([postgresServer], 'a reload without a database', () => {
  const start = startsOn();

  it('without a database `reload` reloads this node, and says that the others did not answer', async () => {
    const server = await startPostgresServer();
    let tokens: Overrides['tokens'] = {};
    const service = await start({
      settings: { storage: { databaseUrl: await server.createDatabase() } },
      reloaded: () => ({ tokens: { ...tokens } }),
    });
    await server.kill();
    tokens = { machineAccessTokenSeconds: 180 };
    const operator = operatorFor(service);
    const { exitCode, output } = await operator('reload');
    expect(exitCode).to.equal(1);
    expect(output).to.contain('Now in force: tokens.machine_access_token').and.contain('No other node has answered');
    const dryRun = await operator('reload --dry-run');
    expect(dryRun.exitCode).to.equal(0);
    expect(dryRun.output).to.contain('nothing was reloaded');
  });
});
