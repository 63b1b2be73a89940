import { expect } from 'chai';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { keyFingerprint, keySightings, startKeySightings } from '../../src/storage/key-sightings.ts';
import { runningNodes } from '../../src/storage/nodes.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { onPostgres } from '../support/databases.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { failureOf } from './waiting.ts';

const A = 'key-a-of-the-tests-0123456789abcdefghij';
const B = 'key-b-of-the-tests-0123456789abcdefghij';
const START = new Date('2026-03-01T12:00:00Z');
const later = (seconds: number): Date => new Date(START.getTime() + seconds * 1000);

onPostgres('the record of key use', (open) => {
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
    const keys = { cookieKeys: [A], tokenKeys };
    const sightings = startKeySightings({
      database,
      clock: time.clock,
      node,
      keysInUse: () => keys,
      describe: async () => READY_NODE,
      log: { warn: (about: unknown) => void warnings.push(about) },
    });
    return { keys, sightings };
  };

  it('each node records when each key was first seen and used for signing, but not the key itself', async () => {
    const web = nodeWith('web:1', [A, B]);
    const { record, stop } = await web.sightings;
    time.advance(60);
    web.keys.tokenKeys = [B, A];
    await record();
    time.advance(60);
    web.keys.tokenKeys = [B];
    await record();
    const of = (key: string) => ({ kind: 'token' as const, fingerprint: keyFingerprint(key) });
    const seen = (await keySightings(database)).filter(({ kind }) => kind === 'token');
    expect(seen).to.have.deep.members([
      {
        ...of(A),
        firstSeenAt: START,
        firstCurrentAt: START,
        lastCurrentAt: START,
      },
      {
        ...of(B),
        firstSeenAt: START,
        firstCurrentAt: later(60),
        lastCurrentAt: later(120),
      },
    ]);
    for (const table of ['key_sightings', 'node_keys']) {
      const text = JSON.stringify(await database.query(`SELECT * FROM ${table}`));
      expect(text).not.to.contain(A).and.not.to.contain(B);
    }
    await stop();
  });

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
    await other?.stop();
    expect(await names()).to.deep.equal(['web:1', 'web:3']);
    time.advance(181);
    await one?.record();
    expect(await names()).to.deep.equal(['web:1']);
    await one?.stop();
    await killed?.stop();
  });

  it('the start fails if key use cannot be recorded; later failures are only logged', async () => {
    const { record, stop } = await nodeWith('web:1', [A]).sightings;
    await database.query('ALTER TABLE node_keys RENAME TO away');
    await record();
    expect(warnings).to.have.length(1);
    expect(await failureOf(nodeWith('web:2', [A]).sightings)).to.be.instanceOf(Error);
    await stop();
  });
});
