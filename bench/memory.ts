/** Measures what a million tokens take in Redis, written by the real store, keys included. */
import { createAuthorizations } from '../src/authorizations/authorization.ts';
import { systemClock } from '../src/base/clock.ts';
import { newValue, randomId } from '../src/base/random-id.ts';
import { createRedis } from '../src/storage/redis/redis.ts';
import { createRedisStore } from '../src/storage/redis/store.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { table } from './table.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The defaults of the settings. */
const LIFETIMES = {
  authorizationCodeSeconds: 600,
  accessTokenSeconds: HOUR,
  refreshTokenSeconds: 30 * DAY,
  retryWindowSeconds: 60,
  absoluteAgeSeconds: 365 * DAY,
};
/** Number of parallel writes: enough to keep Redis busy, few enough to keep its buffers small. */
const BATCH = 500;

/** Fills a separate Redis with `count` records of each kind, and prints the memory they take. */
export async function measureMemory(count: number): Promise<void> {
  // Without the append-only file: it is on disk, and its buffers would only distort the result.
  const server = await startRedisServer({ appendonly: 'no' });
  const redis = createRedis(server.url);
  await redis.connect();
  const store = createRedisStore({ redis, clock: systemClock });
  const authorizations = createAuthorizations({
    store,
    clients: { find: async () => undefined },
    people: { find: async () => undefined },
    clock: systemClock,
    keys: [randomId('', 43)],
    lifetimes: LIFETIMES,
  });
  const clientId = randomId('gate_ci_', 22);
  const accountId = randomId('acc_', 16);
  const redirectUri = 'https://partner.example/callback';
  const codeChallenge = randomId('', 43);
  const issuedAt = Math.floor(Date.now() / 1000);

  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    // Access tokens are computed, not stored, so they take no memory, however many are active.
    'authorizations with live tokens': async () => {
      const draft = authorizations.draft();
      const approval = { accountId, clientId, generation: 1, redirectUri, codeChallenge };
      await authorizations.begin(draft, approval);
      const found = await authorizations.find(authorizations.codeOf(draft));
      if (found) await authorizations.exchange(found.authorization);
    },
    'machine access tokens': () =>
      store.write('machine_token', newValue('machine_token'), [clientId, HOUR], issuedAt + HOUR),
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
