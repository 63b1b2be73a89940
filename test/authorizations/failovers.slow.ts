/** Revocations that the next master of Redis did not receive; other failovers are faults of `ends.slow.ts`. */
import { expect } from 'chai';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { introspect, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addReplica, ask, clusterUrlOf, portOf, startCluster, startSentinel } from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { walk } from './random-walk.ts';

/** Number of tokens, each of a separate authorization. */
const TOKENS = 30;

/** Introspects until every answer is 200, and expects that none of them was active. */
async function expectNeverActive({ issuer }: TestService, { clients }: Seed, tokens: readonly string[]): Promise<void> {
  let active = 0;
  await eventually(async () => {
    for (const token of tokens) {
      const answer = await introspect(issuer, clients.resourceServer, token);
      if (answer.body.active === true) active += 1;
      expect(answer.status).to.equal(200);
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

/** Issues tokens, each of a separate authorization. */
async function issueTokens(partner: PartnerTokens, client: TestClient): Promise<readonly string[]> {
  const tokens: string[] = [];
  while (tokens.length < TOKENS) tokens.push((await partner.tokens(client)).accessToken);
  return tokens;
}

describeOn([postgresServer, redisServer], 'revocations on a Redis with a Sentinel', () => {
  const start = startsOn('postgres');

  it('revocations stay in force if the master is killed before it replicated them', async () => {
    const settings = { 'repl-diskless-sync-delay': '0' };
    const master = await startRedisServer(settings);
    const replica = await startRedisServer({ ...settings, replicaof: `127.0.0.1 ${portOf(master)}` });
    await ask(master, 'SET', 'first', 'written');
    await eventually(async () => expect(await ask(replica, 'EXISTS', 'first')).to.equal(1));
    const { port } = await startSentinel(master);
    const redisUrl = `redis+sentinel://127.0.0.1:${port}/warehouse`;
    const service = await start({ settings: { storage: { redisUrl } } });
    const seeded = await seed(service);
    const tokens = await issueTokens(partnerTokens(service.issuer, seeded), seeded.clients.confidential);
    await untilReplicated(master, replica);
    // The replica hangs, and its connection ends: after `resume` it would read what the system has received for it.
    replica.pause();
    await ask(master, 'CLIENT', 'KILL', 'TYPE', 'replica');
    for (const token of tokens) expect((await revokeCurrent(service.issuer, token)).status).to.equal(204);
    await master.kill();
    replica.resume();
    await expectNeverActive(service, seeded, tokens);
    expect(await countRecords(service, tokens), 'records that came back').to.be.above(0);
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

  it('during a random walk with failovers, revocations agree with the reference model', async () => {
    const seedOfWalk = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    await walk('postgres', { walks: repeated(1), steps: 150, seed: seedOfWalk, redisUrl });
  });

  // Must be the last test: afterwards no server has the address of one master in the URL.
  it('revocations stay in force if a replica that did not receive them replaces its master', async () => {
    const [master] = masters;
    if (!master) throw new Error('no cluster');
    const replica = await addReplica(master);
    const tokens = await issueTokens(on.partner, on.clients.confidential);
    await untilReplicated(master, replica);
    await replica.kill();
    for (const token of tokens) expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    await master.kill();
    await replica.restart();
    masters = [replica, ...masters.slice(1)];
    await eventually(() => ask(replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER'));
    await expectNeverActive(on.service, on.seeded, tokens);
    expect(await countRecords(on.service, tokens), 'records that came back').to.be.above(0);
  });
});
