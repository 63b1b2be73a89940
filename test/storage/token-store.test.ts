import { expect } from 'chai';
import { systemClock } from '../../src/clock.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { createRedis } from '../../src/storage/redis.ts';
import { createRedisStore } from '../../src/storage/redis-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { createTestClock } from '../support/clock.ts';
import { forEachDatabase } from '../support/databases.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, redisServer } from '../support/requirements.ts';
import { forEachStore } from '../support/stores.ts';
import {
  expectAnswersWithoutConnection,
  KINDS,
  newId,
  tokenStoreContract,
} from './token-store-contract.ts';

forEachStore('token store', tokenStoreContract);

/** Writes under identifiers and answers the texts of which nothing may be found in the store. */
async function writeSecrets(store: TokenStore): Promise<string[]> {
  const expiresAt = Math.floor(Date.now() / 1000) + 60;
  const [id, session, uid, grantId] = [newId(), newId(), newId(), newId()];
  for (const kind of KINDS) await store.write(kind, id, {}, expiresAt);
  await store.writeSession(session, uid, {}, expiresAt);
  await store.startFamily(grantId, {}, Date.now(), expiresAt);
  return [id, session, uid, grantId];
}

forEachDatabase('token store, its tables', (open) => {
  let database: OpenDatabase;

  before(async () => {
    database = await open();
  });
  beforeEach(() => database.query('DELETE FROM token_records'));

  it('no identifier is kept in clear', async () => {
    const store = createPostgresStore({ database, clock: systemClock });
    const secrets = await writeSecrets(store);
    const records = await database.query('SELECT * FROM token_records');
    const families = await database.query('DELETE FROM refresh_families RETURNING *');
    expect([records.length, families.length]).to.deep.equal([7, 1]);
    for (const id of secrets) expect(JSON.stringify([records, families])).not.to.contain(id);
  });

  it('expired rows are deleted in batches of at most the limit, live ones never', async () => {
    const time = createTestClock();
    const store = createPostgresStore({ database, clock: time.clock });
    const now = time.clock() / 1000;
    for (let count = 0; count < 5; count += 1) {
      await store.write('code', newId(), {}, now + 10);
      await store.startFamily(newId(), {}, time.clock(), now + 10);
    }
    const kept = newId();
    await store.write('grant', kept, {}, now + 11);
    await store.startFamily(kept, {}, time.clock(), now + 11);
    expect(await store.removeExpired(100)).to.equal(0);
    time.advance(10);
    const batches = [];
    for (let round = 0; round < 5; round += 1) batches.push(await store.removeExpired(4));
    time.restore();
    expect(batches).to.deep.equal([4, 4, 2, 0, 0]);
    expect(await database.query('SELECT 1 FROM token_records')).to.have.length(1);
    expect(await database.query('SELECT 1 FROM refresh_families')).to.have.length(1);
  });

  it('what no identifier can be is answered without a query', async () => {
    const query = () => Promise.reject(new Error('a query'));
    const store = createPostgresStore({ database: { ...database, query }, clock: systemClock });
    await expectAnswersWithoutConnection(store);
  });
});

describeOn([redisServer], 'token store, its keys in Redis', () => {
  const open = async () => {
    const redis = createRedis(await freshRedisUrl());
    await redis.connect();
    return { redis, store: createRedisStore({ redis, clock: systemClock }) };
  };

  it('no identifier is kept in clear, and every key expires', async () => {
    const { redis, store } = await open();
    const secrets = await writeSecrets(store);
    await store.ping();
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map((key) => redis.get(key)));
    expect(keys).to.have.length(10);
    for (const id of secrets) expect(JSON.stringify([keys, values])).not.to.contain(id);
    for (const key of keys) expect(await redis.pttl(key), key).to.be.within(1, 60_000);
    await store.close();
  });

  it('a consumed code and an advanced family keep an end of their own', async () => {
    const { redis, store } = await open();
    const expiresAt = Math.floor(Date.now() / 1000) + 60;
    const id = newId();
    await store.write('code', id, {}, expiresAt);
    await store.consumeCode(id, 'attempt');
    await store.startFamily(id, {}, Date.now(), expiresAt);
    const step = { rotation: 1, attempt: 'a', data: {}, now: Date.now() };
    await store.advanceFamily(id, { ...step, expiresAt: expiresAt + 1000 });
    const ends = await Promise.all((await redis.keys('*')).map((key) => redis.pttl(key)));
    const [code = 0, family = 0] = ends.sort((a, b) => a - b);
    expect(code).to.be.within(1, 60_000);
    expect(family).to.be.within(1_000_000, 1_060_000);
    await store.close();
  });

  it('what no identifier can be is answered without a command', async () => {
    const { store } = await open();
    await store.close();
    await expectAnswersWithoutConnection(store);
  });
});
