import { expect } from 'chai';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { keyFingerprint, startHeartbeat } from '../../src/storage/heartbeat.ts';
import { runningNodes } from '../../src/storage/nodes.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { onPostgres } from '../support/databases.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { failureOf } from './waiting.ts';

const A = 'key-a-of-the-tests-0123456789abcdefghij';
const B = 'key-b-of-the-tests-0123456789abcdefghij';
const START = new Date('2026-03-01T12:00:00Z');

onPostgres('the heartbeat of a node', (open) => {
  let database: OpenDatabase;
  let time: TestClock;
  let warnings: unknown[];

  beforeEach(async () => {
    database = await open();
    time = createTestClock(START);
    warnings = [];
  });
  afterEach(() => time.restore());

  const nodeWith = (node: string, tokenKeys: readonly string[]) => {
    const sightings = startHeartbeat({
      database,
      clock: time.clock,
      node,
      keysInUse: () => ({ cookieKeys: [A], tokenKeys }),
      describe: async () => READY_NODE,
      log: { warn: (about: unknown) => void warnings.push(about) },
    });
    return { sightings };
  };

  it('the list of running nodes omits nodes that were stopped, or killed over three minutes ago', async () => {
    const [one, other, killed] = await Promise.all(
      ['web:1', 'web:2', 'web:3'].map((node) => nodeWith(node, [A, B, A]).sightings),
    );
    const names = async () => (await runningNodes(database, time.clock)).map(({ node }) => node);
    expect(await names()).to.deep.equal(['web:1', 'web:2', 'web:3']);
    expect(await runningNodes(database, time.clock)).to.deep.include({
      node: 'web:1',
      cookieKeys: [keyFingerprint(A)],
      tokenKeys: [A, B, A].map(keyFingerprint),
    });
    expect(JSON.stringify(await database.query('SELECT * FROM node_keys')))
      .not.to.contain(A)
      .and.not.to.contain(B);
    await other?.stop();
    expect(await names()).to.deep.equal(['web:1', 'web:3']);
    time.advance(181);
    await one?.beat();
    expect(await names()).to.deep.equal(['web:1']);
    await one?.stop();
    await killed?.stop();
  });

  it('the start fails if the row of the node cannot be written; later failures are only logged', async () => {
    const { beat, stop } = await nodeWith('web:1', [A]).sightings;
    await database.query('ALTER TABLE node_keys RENAME TO away');
    await beat();
    expect(warnings).to.have.length(1);
    expect(await failureOf(nodeWith('web:2', [A]).sightings)).to.be.instanceOf(Error);
    await stop();
  });
});
