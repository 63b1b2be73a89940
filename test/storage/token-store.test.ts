import { expect } from 'chai';
import { systemClock } from '../../src/base/clock.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { createRedisStore } from '../../src/storage/redis/store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { createTestClock, realNow } from '../support/clock.ts';
import { forEachDatabase } from '../support/databases.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, redisServer } from '../support/requirements.ts';
import { forEachStore } from '../support/stores.ts';
import { expectAnswersWithoutConnection, FACTS, KINDS, newId, tokenStoreContract } from './token-store-contract.ts';

forEachStore('token store', tokenStoreContract);

const LIFETIMES = { codeSeconds: 600, absoluteSeconds: undefined };

/** Writes records and returns their identifiers, none of which may be found in the store. */
async function writeSecrets(store: TokenStore): Promise<string[]> {
  const expiresAt = Math.floor(Date.now() / 1000) + 60;
  const [id, session, uid, authorization] = [newId(), newId(), newId(), newId()];
  for (const kind of KINDS) await store.write(kind, id, {}, expiresAt);
  await store.writeSession(session, uid, {}, expiresAt);
  await store.beginAuthorization(authorization, FACTS, LIFETIMES);
  return [id, session, uid, authorization];
}

forEachDatabase('token store tables', (open) => {
  let database: OpenDatabase;

  before(async () => {
    database = await open();
  });
  beforeEach(async () => {
    await database.query('DELETE FROM token_records');
    await database.query('DELETE FROM authorizations');
  });

  it('rows of the token store contain no identifier in clear text', async () => {
    const store = createPostgresStore({ database, clock: systemClock });
    const secrets = await writeSecrets(store);
    const records = await database.query('SELECT * FROM token_records');
    const authorizations = await database.query('SELECT * FROM authorizations');
    expect(records).to.have.length(KINDS.length + 1);
    expect(authorizations).to.have.length(1);
    for (const id of secrets) expect(JSON.stringify([records, authorizations])).not.to.contain(id);
  });

  it('cleaning deletes only expired rows, in batches of at most the limit', async () => {
    const time = createTestClock();
    const timeShift = () => (database.embedded ? 0 : time.clock() - realNow());
    const store = createPostgresStore({ database, clock: time.clock, timeShift });
    const now = time.clock() / 1000;
    for (let count = 0; count < 5; count += 1) {
      await store.write('interaction', newId(), {}, now + 4_000);
      // The code expires after 300 s; its row stays for another hour, to recognize a replay.
      await store.beginAuthorization(newId(), FACTS, { ...LIFETIMES, codeSeconds: 300 });
    }
    await store.write('session', newId(), {}, now + 4_001);
    await store.beginAuthorization(newId(), FACTS, LIFETIMES);
    time.advance(3_800);
    expect(await store.removeExpired(100)).to.equal(0);
    time.advance(200);
    const batches = [];
    for (let round = 0; round < 5; round += 1) batches.push(await store.removeExpired(4));
    time.restore();
    expect(batches).to.deep.equal([4, 4, 2, 0, 0]);
    expect(await database.query('SELECT 1 FROM token_records')).to.have.length(1);
    expect(await database.query('SELECT 1 FROM authorizations')).to.have.length(1);
  });

  it('an impossible identifier causes no database query', async () => {
    const query = () => Promise.reject(new Error('a query'));
    const store = createPostgresStore({ database: { ...database, query }, clock: systemClock });
    await expectAnswersWithoutConnection(store);
  });
});

describeOn([redisServer], 'token store keys in Redis', () => {
  const open = async () => {
    const redis = createRedis(await freshRedisUrl());
    await redis.connect();
    return { redis, store: createRedisStore({ redis, clock: systemClock }) };
  };

  it('keys in Redis contain no identifier in clear text, and every key has an expiry', async () => {
    const { redis, store } = await open();
    const secrets = await writeSecrets(store);
    await store.ping();
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map((key) => redis.get(key)));
    // The check of readiness leaves no key.
    expect(keys).to.have.length(KINDS.length + 3);
    for (const id of secrets) expect(JSON.stringify([keys, values])).not.to.contain(id);
    for (const key of keys) expect(await redis.pttl(key), key).to.be.within(1, 4_200_000);
    await store.close();
  });

  it('Redis keys of an authorization expire an hour after the code, or a day after the refresh token', async () => {
    const { redis, store } = await open();
    const id = newId();
    const [HOUR, DAY] = [3_600, 86_400];
    const step = { attempt: 'attempt', refreshSeconds: 30 * DAY };
    const expectKept = async (seconds: number) => {
      const [key = ''] = await redis.keys('*');
      expect(await redis.pttl(key)).to.be.within((seconds - 60) * 1_000, seconds * 1_000);
    };
    await store.beginAuthorization(id, FACTS, { ...LIFETIMES, absoluteSeconds: 365 * DAY });
    await expectKept(600 + HOUR);
    await store.exchangeCode(id, step);
    await expectKept(31 * DAY);
    await store.rotate(id, { ...step, from: 0, refreshSeconds: 20 * DAY, retryWindowSeconds: 0 });
    await expectKept(21 * DAY);
    await store.confirmRotation(id, 1);
    await expectKept(21 * DAY);
    await store.endAuthorization(id);
    expect(await redis.keys('*')).to.deep.equal([]);
    await store.close();
  });

  it('an authorization with fields of a later version works, and keeps these fields', async () => {
    const { redis, store } = await open();
    const id = newId();
    const step = { attempt: 'attempt', refreshSeconds: 100 };
    await store.beginAuthorization(id, FACTS, LIFETIMES);
    const [key = ''] = await redis.keys('*');
    const [, head = '', facts = ''] = /^([^:]*):(.*)\]$/.exec((await redis.get(key)) ?? '') ?? [];
    await redis.set(key, `${head}!17!of-tomorrow:${facts},"also of tomorrow"]`, 'KEEPTTL');
    const expectKept = async () => {
      expect(await redis.get(key)).to.match(/!17!of-tomorrow:\[.*,"also of tomorrow"\]$/);
      expect(await store.readAuthorization(id)).to.include(FACTS);
    };
    await expectKept();
    expect((await store.exchangeCode(id, step)).outcome).to.equal('issued');
    await expectKept();
    const refresh = { ...step, attempt: 'another', from: 0, retryWindowSeconds: 60 };
    expect((await store.rotate(id, refresh)).outcome).to.equal('issued');
    await store.confirmRotation(id, 1);
    await expectKept();
    expect(await store.endAuthorization(id)).to.equal(true);
    await store.close();
  });

  it('the store answers for an invalid identifier without a Redis command', async () => {
    const { store } = await open();
    await store.close();
    await expectAnswersWithoutConnection(store);
  });
});
