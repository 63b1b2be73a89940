/** What a million live tokens cost in Redis, written by the real store, keys included. */
import { systemClock } from '../src/clock.ts';
import { createRefreshTokens } from '../src/provider/refresh-tokens.ts';
import { storeAdapter } from '../src/provider/store-adapter.ts';
import { PREFIX } from '../src/provider/token-values.ts';
import { randomId } from '../src/random-id.ts';
import { createRedis } from '../src/storage/redis.ts';
import { createRedisStore } from '../src/storage/redis-store.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { table } from './table.ts';

const HOUR = 3_600;
const YEAR = 365 * 24 * HOUR;
/** Written at the same time: enough to keep Redis busy, few enough to keep its buffers small. */
const BATCH = 500;

/** Fills a Redis of its own with `count` records of each kind and prints what they take. */
export async function measureMemory(count: number): Promise<void> {
  // The append-only file is on disk; its buffers would only blur the figure.
  const server = await startRedisServer({ appendonly: 'no' });
  const redis = createRedis(server.url);
  await redis.connect();
  const store = createRedisStore({ redis, clock: systemClock });
  const refreshTokens = createRefreshTokens({
    store,
    clock: systemClock,
    keys: [randomId('', 43)],
    retryWindowSeconds: 60,
    noteReplay: () => {},
    outcomes: { refreshRetried: () => {} },
  });
  const adapter = storeAdapter({ store, refreshTokens, noteReplay: () => {} });
  const iat = Math.floor(Date.now() / 1000);
  const clientId = randomId('gate_ci_', 22);
  const accountId = randomId('acc_', 16);

  const accessTokens = adapter('AccessToken');
  const grants = adapter('Grant');
  const families = adapter('RefreshToken');
  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    'access tokens': () => {
      const payload = { grantId: randomId('', 22), iat, exp: iat + HOUR };
      return accessTokens.upsert(randomId(PREFIX.accessToken, 65), payload, HOUR);
    },
    grants: () => {
      const payload = { accountId, clientId, iat, exp: iat + YEAR };
      return grants.upsert(randomId('', 22), payload, YEAR);
    },
    'refresh tokens (one record a grant)': () => {
      const grantId = randomId('', 22);
      const value = refreshTokens.valueOf({ grantId, rotation: 0 });
      // What the engine keeps of a refresh token today.
      const times = { iat, exp: iat + 30 * 24 * HOUR, iiat: iat, authTime: iat };
      const ids = { accountId, clientId, grantId, sessionUid: randomId('', 43) };
      const payload = { ...times, ...ids, rotations: 0, gty: 'authorization_code', scope: '' };
      return families.upsert(value, payload, 30 * 24 * HOUR);
    },
  };

  const rows: string[][] = [];
  for (const [kind, write] of Object.entries(kinds)) {
    const before = await usedMemory();
    for (let written = 0; written < count; written += BATCH) {
      const size = Math.min(BATCH, count - written);
      await Promise.all(Array.from({ length: size }, write));
    }
    const perRecord = ((await usedMemory()) - before) / count;
    rows.push([kind, count.toLocaleString('en'), perRecord.toFixed(0), perRecord.toFixed(0)]);
  }
  await store.close();
  await server.stop();
  console.log(table(['Redis memory', 'records', 'bytes each', 'MB per million'], rows));

  async function usedMemory(): Promise<number> {
    return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  }
}
