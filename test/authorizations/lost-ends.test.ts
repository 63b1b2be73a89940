/** A Redis that lost the latest revocations is not used before they are repeated on it. */
import { cpSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { tokensOf } from '../provider/partner-tokens.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { counted, readinessOf, scrape } from '../support/metrics.ts';
import { clientCredentials, introspect, revokeCurrent } from '../support/oauth.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

/** Replaces the default: a master waits five seconds for more replicas before it synchronizes. */
const SYNC_AT_ONCE = { 'repl-diskless-sync-delay': '0' };

describeOn([postgresServer, redisServer], 'revocations that Redis lost', () => {
  let redis: RedisServer;
  let other: TestService;
  const start = startsOn('postgres');
  const on = startSeeded({
    async on(options) {
      redis = await startRedisServer({ appendfsync: 'always', ...SYNC_AT_ONCE });
      return start({ ...options, settings: { storage: { redisUrl: redis.url } } });
    },
  });
  before(async () => {
    other = await start({ sharing: on.service });
  });
  beforeEach(expectBothReady);

  const nodes = (): readonly TestService[] => [on.service, other];
  const database = () => on.service.database;

  /** Asks the stores themselves, because /readyz may send an answer that is a second old. */
  function expectBothReady(): Promise<void> {
    return eventually(async () => {
      for (const { store } of nodes()) await store.ping();
    });
  }

  async function issueTokens(): Promise<readonly string[]> {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const machine = tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
    return [accessToken, machine];
  }

  async function expectRevoked(tokens: readonly string[]): Promise<void> {
    for (const token of tokens) {
      expect((await revokeCurrent(on.issuer, token)).status, 'revocation').to.equal(204);
    }
  }

  /** Introspects at every node until stopped. @returns the counts so far, and how to stop it */
  function startAsking(tokens: readonly string[]) {
    const answers = { active: 0, inactive: 0, unavailable: 0 };
    let isStopped = false;
    const askers = nodes().flatMap((node) =>
      tokens.map(async (token) => {
        while (!isStopped) {
          const { status, body } = await introspect(node.issuer, on.clients.resourceServer, token);
          if (status === 503) answers.unavailable += 1;
          else if (body.active === true) answers.active += 1;
          else answers.inactive += 1;
          await delay(1);
        }
      }),
    );
    const stop = async (): Promise<void> => {
      isStopped = true;
      await Promise.all(askers);
    };
    return { answers, stop };
  }

  const repeats = async (): Promise<number> => {
    let sum = 0;
    for (const node of nodes()) {
      sum += counted(await scrape(node), 'gatehouse_ends_repeats_total')[''] ?? 0;
    }
    return sum;
  };

  /**
   * Kills Redis, restarts it, and waits until both nodes use it again.
   *
   * @param whileDown runs before the restart
   */
  async function restartRedis(whileDown: () => void | Promise<void> = () => {}): Promise<void> {
    const before = await repeats();
    await redis.kill();
    await whileDown();
    await redis.restart();
    await eventually(async () => expect(await repeats(), 'by one node').to.equal(before + 1));
    await expectBothReady();
  }

  it('revocations stay in force when an older backup of Redis is restored while the nodes run', async () => {
    const tokens = await issueTokens();
    const backup = `${redis.directory}-backup`;
    await restartRedis(() => cpSync(redis.directory, backup, { recursive: true }));
    await expectRevoked(tokens);
    const { answers, stop } = startAsking(tokens);
    await restartRedis(async () => {
      rmSync(redis.directory, { recursive: true });
      cpSync(backup, redis.directory, { recursive: true });
      // Wait for a refused request: none is refused if Redis returns before a node reconnects.
      await eventually(() => expect(answers.unavailable, 'answers with 503').to.be.above(0));
    });
    await stop();
    expect(answers.active, 'answers "active"').to.equal(0);
    const logged = nodes()
      .flatMap(({ logLines }) => logLines)
      .map((line) => JSON.parse(line));
    const [repeat] = logged.filter(({ revived }) => revived === 2);
    expect(repeat).to.include({
      msg: 'another Redis answers: repeated the revocations of the last 24 hours on it',
    });
  });

  it('revocations are repeated on a Redis that restarts empty, which then stores new tokens', async () => {
    await restartRedis(() => rmSync(`${redis.directory}/appendonlydir`, { recursive: true }));
    const tokens = await issueTokens();
    await expectRevoked(tokens);
    for (const token of tokens) expect(await on.partner.isActive(token)).to.equal(false);
  });

  it('lost revocations make each node answer 503 until another node has repeated them', async () => {
    const tokens = await issueTokens();
    await database().query(`UPDATE ends_carried_out SET node = 'another', turn_until = now() + interval '1 hour'`);
    await redis.kill();
    await redis.restart();
    try {
      for (const node of nodes()) {
        await eventually(async () => {
          expect((await readinessOf(node)).body.reason).to.contain('another node is repeating the revocations');
        });
        for (const token of tokens) {
          const answer = await introspect(node.issuer, on.clients.resourceServer, token);
          expect(answer.status).to.equal(503);
        }
      }
    } finally {
      await database().query(`UPDATE ends_carried_out SET turn_until = '-infinity'`);
    }
    await expectBothReady();
    for (const token of tokens) expect(await on.partner.isActive(token)).to.equal(true);
  });

  it('each node answers 503 while PostgreSQL cannot say which Redis has the revocations', async () => {
    const tokens = await issueTokens();
    await expectRevoked(tokens);
    await database().query('ALTER TABLE redis_masters RENAME TO out_of_reach');
    await redis.kill();
    await redis.restart();
    for (const node of nodes()) {
      await eventually(async () => {
        expect((await readinessOf(node)).body.reason).to.contain('whether this Redis has lost revocations');
      });
      for (const token of tokens) {
        const answer = await introspect(node.issuer, on.clients.resourceServer, token);
        expect(answer.status).to.equal(503);
      }
    }
    await database().query('ALTER TABLE out_of_reach RENAME TO redis_masters');
    await expectBothReady();
    for (const token of tokens) expect(await on.partner.isActive(token)).to.equal(false);
  });

  it('revocations are repeated on a Redis with an older replication offset than the one stored', async () => {
    await expectRevoked(await issueTokens());
    const before = await repeats();
    await database().query('UPDATE redis_masters SET replication_offset = replication_offset + 1e9');
    const next = await start({ sharing: on.service });
    expect(counted(await scrape(next), 'gatehouse_ends_repeats_total')[''], 'by the new node').to.equal(1);
    await expectBothReady();
    expect(await repeats(), 'by the others').to.equal(before);
    await next.close();
  });

  it('revocations are not acknowledged if they are written to a Redis that was replaced meanwhile', async () => {
    const [token = ''] = await issueTokens();
    // Simulates another node that found the next master; the notification of that has not arrived
    // yet.
    const replaced = await database().query<{ id: string }>(
      `UPDATE redis_masters SET is_ready = false RETURNING replication_id AS id`,
    );
    try {
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(503);
    } finally {
      await database().query(`UPDATE redis_masters SET is_ready = true`);
    }
    expect(replaced).to.have.length(1);
    expect((await revokeCurrent(on.issuer, token)).status).to.be.oneOf([204, 401]);
    expect(await on.partner.isActive(token)).to.equal(false);
  });

  it('revocations are repeated when the data of Redis is replaced, even if no connection breaks', async () => {
    const tokens = await issueTokens();
    const copy = await startRedisServer({
      replicaof: `127.0.0.1 ${new URL(redis.url).port}`,
      ...SYNC_AT_ONCE,
    });
    const clients = [new Redis(redis.url), new Redis(copy.url)] as const;
    const [admin, admins] = clients;
    atEndOfFile(async () => {
      for (const client of clients) client.disconnect();
      await copy.stop();
    });
    await eventually(async () => {
      expect(await admins.info('replication')).to.contain('master_link_status:up');
    });
    await admins.replicaof('NO', 'ONE');
    // A server that gets its first replica chooses a new replication ID. Wait until each node uses
    // the server under this ID.
    const [, id = ''] = /^master_replid:(\w+)/m.exec(await admin.info('replication')) ?? [];
    await eventually(async () => {
      for (const { store } of nodes()) {
        await store.ping();
        expect(store.usesOnlyMasters([id])).to.equal(true);
      }
    });
    await expectRevoked(tokens);
    const before = await repeats();
    await admin.replicaof('127.0.0.1', new URL(copy.url).port);
    await eventually(async () => {
      expect(await admin.info('replication')).to.contain('master_link_status:up');
    });
    await admin.replicaof('NO', 'ONE');
    await eventually(async () => expect(await repeats()).to.equal(before + 1));
    await eventually(async () => {
      for (const node of nodes()) {
        for (const token of tokens) {
          const { status, body } = await introspect(node.issuer, on.clients.resourceServer, token);
          expect([status, body.active]).to.deep.equal([200, false]);
        }
      }
    });
  });
});
