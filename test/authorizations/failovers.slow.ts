/** Revocations that were acknowledged around a failover of Redis are never undone. */
import { cpSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { readinessOf } from '../support/metrics.ts';
import { introspect, revokeCurrent } from '../support/oauth.ts';
import {
  addReplica,
  ask,
  askSentinel,
  clusterUrlOf,
  cutOff,
  expectState,
  portOf,
  type Sentinel,
  startCluster,
  startSentinel,
  untilMaster,
} from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { walk } from './random-walk.ts';

const ROUNDS = repeated(1);
/** Number of tokens in one round, each of a separate authorization. */
const TOKENS = 120;
/** Milliseconds between two revocations. */
const PACE = 5;

/** Introspects until every answer is 200, and expects that none of them was active. */
async function expectNeverActive(
  nodes: readonly TestService[],
  { clients }: Seed,
  tokens: readonly string[],
): Promise<void> {
  let active = 0;
  await eventually(async () => {
    for (const node of nodes) {
      for (const token of tokens) {
        const answer = await introspect(node.issuer, clients.resourceServer, token);
        if (answer.body.active === true) active += 1;
        expect(answer.status).to.equal(200);
      }
    }
  });
  expect(active, 'answers "active"').to.equal(0);
}

/** Counts the ended authorizations whose records the token store has again. */
async function countRecords({ store }: TestService, tokens: readonly string[]): Promise<number> {
  const records = await Promise.all(
    tokens.map((token) => store.readAuthorization(String(readValue(token)?.authorizationId))),
  );
  return records.filter((record) => record !== undefined).length;
}

/** Resolves when the replica has everything that the master has written so far. */
async function untilReplicated(master: RedisServer, replica: RedisServer): Promise<void> {
  const offsetOf = async (server: RedisServer, name: string): Promise<number> => {
    const info = String(await ask(server, 'INFO', 'replication'));
    return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
  };
  const written = await offsetOf(master, 'master_repl_offset');
  await eventually(async () => {
    expect(await offsetOf(replica, 'slave_repl_offset')).to.be.at.least(written);
  });
}

describeOn([postgresServer, redisServer], 'revocations around a failover', () => {
  const start = startsOn('postgres');
  let servers: RedisServer[] = [];
  let sentinel: Sentinel;
  let service: TestService;
  let other: TestService;
  let seeded: Seed;

  beforeEach(async () => {
    const master = await startRedisServer({ 'repl-diskless-sync-delay': '0' });
    const replica = await startRedisServer({
      replicaof: `127.0.0.1 ${portOf(master)}`,
      'repl-diskless-sync-delay': '0',
    });
    servers = [master, replica];
    await ask(master, 'SET', 'first', 'written');
    await eventually(async () => expect(await ask(replica, 'EXISTS', 'first')).to.equal(1));
    sentinel = await startSentinel(master);
    const redisUrl = `redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`;
    service = await start({ settings: { storage: { redisUrl } } });
    other = await start({ sharing: service });
    seeded = await seed(service);
  });
  afterEach(async () => {
    for (const server of servers) await server.stop();
  });

  const nodes = (): readonly TestService[] => [service, other];

  async function issueTokens(wanted = TOKENS): Promise<readonly string[]> {
    const partner = partnerTokens(service.issuer, seeded);
    const tokens: string[] = [];
    for (let count = 0; count < wanted; count += 1) {
      tokens.push((await partner.tokens(seeded.clients.confidential)).accessToken);
    }
    return tokens;
  }

  /** Revokes tokens one after another at both nodes. @returns those that were answered with 204. */
  function revokeAll(tokens: readonly string[]) {
    const revoked: string[] = [];
    let unavailable = 0;
    const done = Promise.all(
      nodes().map(async (node, place) => {
        for (const [index, token] of tokens.entries()) {
          if (index % 2 !== place) continue;
          const { status } = await revokeCurrent(node.issuer, token);
          if (status === 204) revoked.push(token);
          else if (status === 503) unavailable += 1;
          await delay(2 * PACE);
        }
      }),
    );
    return { revoked, done, unavailable: () => unavailable };
  }

  it('revocations stay in force if the master is killed before it replicated them', async () => {
    const [master, replica] = servers as [RedisServer, RedisServer];
    const tokens = await issueTokens(50);
    await untilReplicated(master, replica);
    // The replica receives no more writes, but still becomes the next master.
    await cutOff(replica, master);
    const { revoked, done } = revokeAll(tokens);
    await done;
    expect(revoked).to.have.length(tokens.length);
    await master.kill();
    replica.resume();
    await expectNeverActive(nodes(), seeded, revoked);
    expect(await countRecords(service, revoked), 'records that came back').to.be.above(0);
  });

  it(`revocations stay in force through ${ROUNDS === 1 ? 'a planned failover' : `${ROUNDS} planned failovers`} without a pause of writes`, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const [, next] = servers;
      if (!next) throw new Error('no replica');
      const tokens = await issueTokens();
      const { revoked, done, unavailable } = revokeAll(tokens);
      await delay(100);
      await eventually(() => askSentinel(sentinel, 'failover', 'warehouse'));
      await untilMaster(sentinel, next);
      await done;
      expect(revoked).not.to.be.empty;
      await expectNeverActive(nodes(), seeded, revoked);
      if (process.env.REPEAT) {
        console.log({ round, revoked: revoked.length, unavailable: unavailable() });
      }
      servers.reverse();
      // The former master must be a replica of the new master before it can replace it.
      await eventually(async () => {
        const [former] = servers.toReversed();
        if (!former) throw new Error('no replica');
        expect(await ask(former, 'INFO', 'replication')).to.contain('master_link_status:up');
      });
    }
  });
});

describeOn([postgresServer, redisServer], 'revocations on a Redis Cluster', () => {
  const start = startsOn('postgres');
  let masters: readonly RedisServer[];
  let redisUrl: string;
  const on = startSeeded({
    async on(options) {
      masters = await startCluster();
      redisUrl = clusterUrlOf(masters);
      return start({ ...options, settings: { storage: { redisUrl } } });
    },
  });
  after(async () => {
    for (const master of masters) await master.stop();
  });

  it('revocations stay in force when a master returns from a backup', async () => {
    const [first] = masters;
    if (!first) throw new Error('no cluster');
    const other = await start({ sharing: on.service });
    const tokens: string[] = [];
    for (let count = 0; count < 30; count += 1) {
      tokens.push((await on.partner.tokens(on.clients.confidential)).accessToken);
    }
    const backup = `${first.directory}-backup`;
    const allAnswer = () =>
      eventually(async () => {
        for (const { store } of [on.service, other]) await store.ping();
      });
    await first.kill();
    cpSync(first.directory, backup, { recursive: true });
    await first.restart();
    await allAnswer();
    for (const token of tokens) {
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    }
    await first.kill();
    await eventually(async () => expect((await readinessOf(on.service)).status).to.equal(503));
    rmSync(`${first.directory}/appendonlydir`, { recursive: true });
    cpSync(`${backup}/appendonlydir`, `${first.directory}/appendonlydir`, { recursive: true });
    await first.restart();
    await expectNeverActive([on.service, other], on.seeded, tokens);
    expect(await countRecords(on.service, tokens), 'records that came back').to.be.above(0);
  });

  it('a node uses a Cluster again that was down', async () => {
    const [first, ...others] = masters;
    if (!first) throw new Error('no cluster');
    await first.kill();
    // The others serve nothing until some seconds after the first has returned.
    await eventually(() => expectState(others, 'fail'));
    await first.restart();
    await eventually(() => on.service.store.ping());
  });

  it('during a random walk with failovers, revocations agree with the reference model', async () => {
    const seedOfWalk = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    await walk('postgres', { walks: repeated(1), steps: 150, seed: seedOfWalk, redisUrl });
  });

  // Must be the last test: afterwards no server has the address of one master in the URL.
  it('revocations stay in force if a replica that did not receive them replaces its master', async () => {
    const [master] = masters;
    if (!master) throw new Error('no cluster');
    const replica = await addReplica(master);
    const tokens: string[] = [];
    for (let count = 0; count < 30; count += 1) {
      tokens.push((await on.partner.tokens(on.clients.confidential)).accessToken);
    }
    await untilReplicated(master, replica);
    await replica.kill();
    for (const token of tokens) {
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    }
    await master.kill();
    await replica.restart();
    masters = [replica, ...masters.slice(1)];
    await eventually(() => ask(replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER'));
    await expectNeverActive([on.service], on.seeded, tokens);
    expect(await countRecords(on.service, tokens), 'records that came back').to.be.above(0);
  });
});
