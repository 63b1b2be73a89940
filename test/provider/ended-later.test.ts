/** An end holds whatever the token store knows of it: while it is away, and when an older one comes back. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { operatorBeside, valueFrom } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, refresh, type TestClient } from '../support/oauth.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { type Tokens, tokensOf } from './partner-tokens.ts';

const DAY = 86_400;

async function expectOver(on: Seeded, client: TestClient, ...all: Tokens[]): Promise<void> {
  for (const { accessToken, refreshToken } of all) {
    expect(await on.partner.isActive(accessToken)).to.equal(false);
    expect((await refresh(on.issuer, client, refreshToken)).status).to.be.oneOf([400, 401]);
  }
}

/** Ends all authorizations of a person or a client. */
const WAYS: Readonly<Record<string, (on: Seeded, client: TestClient) => Promise<unknown>>> = {
  'revoke --account': ({ service, seeded: { person } }) =>
    valueFrom(operatorBeside(service), ['revoke', '--account', person.email, '--yes']),
  'revoke --client': ({ service }, { id }) =>
    valueFrom(operatorBeside(service), ['revoke', '--client', id, '--yes']),
  'the deletion of the client': ({ service }, { id }) => service.clients.remove(id),
};

describeOn([postgresServer, redisServer], 'an authorization in a Redis that is away', () => {
  let redis: RedisServer;
  let admin: Redis;
  const start = startsOn('postgres');
  const on = startSeeded({
    clock: true,
    async on(options) {
      redis = await startRedisServer({ appendfsync: 'always' });
      admin = new Redis(redis.url);
      admin.on('error', () => {});
      return start({ ...options, patience: 1, settings: { storage: { redisUrl: redis.url } } });
    },
  });
  after(() => admin?.disconnect());

  /** Everything as it is there now, to be put back. */
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

  for (const [way, end] of Object.entries(WAYS)) {
    it(`is ended by ${way} meanwhile, also where an older Redis comes back`, async () => {
      const client = await addTestClient(on.service, 'Dock Planner');
      const tokens = await on.partner.tokens(client);
      const restore = await copy();
      await redis.stop();
      await end(on, client);
      await redis.restart();
      await eventually(() => on.service.store.ping());
      await eventually(() => expectOver(on, client, tokens));
      await restore();
      await expectOver(on, client, tokens);
    });
  }

  it('is ended on the page, and the older Redis that comes back later changes nothing', async () => {
    const client = await addTestClient(on.service, 'Dock Planner');
    const tokens = await on.partner.tokens(client);
    const restore = await copy();
    const disconnect = await on.partner.askToDisconnect(client);
    await disconnect();
    await expectOver(on, client, tokens);
    await restore();
    await expectOver(on, client, tokens);
    const again = await on.partner.tokens(client);
    expect(await on.partner.isActive(again.accessToken)).to.equal(true);
    await expectOver(on, client, tokens);
  });

  it('a refresh whose answer was lost goes on after an hour without Redis', async () => {
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

  it('nothing stays in Redis longer than 32 days after it was last used', async () => {
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
