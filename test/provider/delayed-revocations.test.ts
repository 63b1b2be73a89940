/** Revocations while the token store is unavailable, and after an older copy of it was restored. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, refresh, type TestClient } from '../support/oauth.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { type Tokens, tokensOf } from './partner-tokens.ts';

const DAY = 86_400;

async function expectEnded(on: Seeded, client: TestClient, ...all: Tokens[]): Promise<void> {
  for (const { accessToken, refreshToken } of all) {
    expect(await on.partner.isActive(accessToken)).to.equal(false);
    expect((await refresh(on.issuer, client, refreshToken)).status).to.be.oneOf([400, 401]);
  }
}

/** Ends all authorizations of a person or a client. */
const ENDINGS: Readonly<Record<string, (on: Seeded, client: TestClient) => Promise<unknown>>> = {
  'revoke --account': ({ service, seeded: { person } }) =>
    valueFrom(operatorFor(service), ['revoke', '--account', person.email, '--yes']),
  'revoke --client': ({ service }, { id }) => valueFrom(operatorFor(service), ['revoke', '--client', id, '--yes']),
  'the deletion of the client': ({ service }, { id }) => service.clients.remove(id),
};

describeOn([postgresServer, redisServer], 'an authorization and an outage of Redis', () => {
  let redis: RedisServer;
  let admin: Redis;
  const start = startsOn('postgres');
  const on = startSeeded({
    clock: true,
    async on(options) {
      redis = await startRedisServer({ appendfsync: 'always' });
      admin = new Redis(redis.url);
      admin.on('error', () => {});
      return start({
        ...options,
        timeoutFactor: SHORT_TIMEOUT_FACTOR,
        settings: { storage: { redisUrl: redis.url } },
      });
    },
  });
  after(() => admin?.disconnect());

  /** Copies all keys. @returns a function that restores them */
  async function copy(): Promise<() => Promise<void>> {
    const keys = await admin.keys('*');
    const values = await Promise.all(keys.map((key) => admin.dumpBuffer(key)));
    const ends = await Promise.all(keys.map((key) => admin.pttl(key)));
    return async () => {
      await admin.flushall();
      for (const [index, key] of keys.entries()) {
        await admin.restore(key, Math.max(1, ends[index] ?? 1), values[index] ?? Buffer.from(''));
      }
    };
  }

  for (const [way, end] of Object.entries(ENDINGS)) {
    it(`an authorization ended by ${way} during an outage of Redis stays ended after a restore`, async () => {
      const client = await addTestClient(on.service, 'Dock Planner');
      const tokens = await on.partner.tokens(client);
      const restore = await copy();
      await redis.stop();
      await end(on, client);
      await redis.restart();
      await eventually(() => on.service.store.ping());
      await eventually(() => expectEnded(on, client, tokens));
      await restore();
      await expectEnded(on, client, tokens);
    });
  }

  it('an authorization that its user ended stays ended after an older copy of Redis is restored', async () => {
    const client = await addTestClient(on.service, 'Dock Planner');
    const tokens = await on.partner.tokens(client);
    const restore = await copy();
    const disconnect = await on.partner.askToDisconnect(client);
    await disconnect();
    await expectEnded(on, client, tokens);
    await restore();
    await expectEnded(on, client, tokens);
    const again = await on.partner.tokens(client);
    expect(await on.partner.isActive(again.accessToken)).to.equal(true);
    await expectEnded(on, client, tokens);
  });

  it('a refresh whose answer was lost can be retried after an hour without Redis', async () => {
    const { confidential } = on.clients;
    const { refreshToken } = await on.partner.tokens(confidential);
    const lost = tokensOf(await refresh(on.issuer, confidential, refreshToken));
    await redis.stop();
    expect((await refresh(on.issuer, confidential, refreshToken)).status).to.equal(503);
    await redis.restart();
    await eventually(() => on.service.store.ping());
    on.clock.advance(3_600);
    const retried = await refresh(on.issuer, confidential, refreshToken);
    expect(retried.status, retried.text).to.equal(200);
    expect(tokensOf(retried).refreshToken).to.equal(lost.refreshToken);
  });

  it('every key in Redis expires within 32 days of its last use', async () => {
    const { confidential, machine } = on.clients;
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    await refresh(on.issuer, confidential, refreshToken);
    await on.partner.isActive(accessToken);
    await clientCredentials(on.issuer, machine);
    const keys = await admin.keys('*');
    expect(keys.length).to.be.above(4);
    for (const key of keys) {
      expect(await admin.pttl(key), key).to.be.within(1, 32 * DAY * 1_000);
    }
  });
});
