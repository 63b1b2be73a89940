/** Measures the memory of tokens in Redis and the size of people in PostgreSQL, written by the real stores. */
import { createPeople } from '../src/accounts/access/people.ts';
import { createActivity } from '../src/accounts/activity/activity.ts';
import { createAuthorizations } from '../src/authorizations/authorization.ts';
import { createConnections } from '../src/authorizations/connections.ts';
import { systemClock } from '../src/base/clock.ts';
import { newValue, randomId } from '../src/base/random-id.ts';
import { silentChangeFeed } from '../src/storage/change-feed.ts';
import { openDatabase } from '../src/storage/database.ts';
import { createRedis } from '../src/storage/redis/redis.ts';
import { createRedisStore } from '../src/storage/redis/store.ts';
import { freshMigratedDatabaseUrl } from '../test/support/postgres-server.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { accountIdOf, fillPeople } from './connected-people.ts';
import { fill } from './deployment.ts';
import { processorTime } from './processor.ts';
import { table } from './table.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The defaults of the settings. */
const LIFETIMES = {
  authorizationCodeSeconds: 600,
  accessTokenSeconds: HOUR,
  refreshTokenSeconds: 30 * DAY,
  retryWindowSeconds: 60,
};
/** Number of parallel writes: enough to keep Redis busy, few enough to keep its buffers small. */
const BATCH = 500;

async function inBatches(count: number, write: (index: number) => Promise<unknown>): Promise<void> {
  for (let written = 0; written < count; written += BATCH) {
    const size = Math.min(BATCH, count - written);
    await Promise.all(Array.from({ length: size }, (_, index) => write(written + index)));
  }
}

/** Connects to Redis, and returns functions that write one record of each kind. */
async function openRedis(url: string) {
  // Do not use the timeout of production: 16,384 simultaneous commands take long on a busy machine.
  const redis = createRedis(url, { timeoutFactor: 60 });
  await redis.connect();
  const store = createRedisStore({ redis, clock: systemClock });
  const authorizations = createAuthorizations({
    store,
    clients: { find: async () => undefined },
    people: { find: async () => undefined, hasEnded: async () => false },
    clock: systemClock,
    keys: [randomId('', 43)],
    lifetimes: LIFETIMES,
  });
  const clientId = randomId('gate_ci_', 22);
  const accountId = randomId('acc_', 16);
  const redirectUri = 'https://partner.example/callback';
  const codeChallenge = randomId('', 43);
  const issuedAt = Math.floor(Date.now() / 1000);
  return {
    redis,
    store,

    // Access tokens are computed, not stored, so they take no memory, however many are active.
    async writeAuthorization(): Promise<void> {
      const draft = authorizations.draft();
      const approval = { accountId, clientId, generation: 1, clientGeneration: 0, redirectUri, codeChallenge };
      await authorizations.begin(draft, approval);
      const found = await authorizations.find(authorizations.codeOf(draft));
      if (found) await authorizations.exchange(found.authorization);
    },
    writeMachineToken: () =>
      store.write('machine_token', newValue('machine_token'), [clientId, HOUR, 0, 'abcdefgh'], issuedAt + HOUR),
  };
}

/** Fills a separate Redis with `count` records of each kind, and prints the memory they take. */
export async function measureMemory(count: number): Promise<void> {
  // Turn off the append-only file, which is on disk, and whose buffers would distort the result.
  const server = await startRedisServer({ appendonly: 'no' });
  const { redis, store, ...writes } = await openRedis(server.url);
  const kinds = {
    'authorizations with live tokens': writes.writeAuthorization,
    'machine access tokens': writes.writeMachineToken,
  };
  const usedMemory = async (): Promise<number> => numberIn(await redis.info('memory'));

  const rows: string[][] = [];
  for (const [kind, write] of Object.entries(kinds)) {
    const before = await usedMemory();
    await inBatches(count, write);
    const perRecord = ((await usedMemory()) - before) / count;
    rows.push([kind, count.toLocaleString('en'), perRecord.toFixed(0), perRecord.toFixed(0)]);
  }
  await store.close();
  await server.stop();
  console.log(table(['Redis memory', 'records', 'bytes each', 'MB per million'], rows));
}

const numberIn = (info: string): number => Number(/^used_memory:(\d+)/m.exec(info)?.[1]);

const TABLES = ['accounts', 'organization_memberships', 'warehouse_rights', 'connections', 'activity'] as const;
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** Fills PostgreSQL with `count` people, and prints the size of their rows and indexes. */
export async function measureRows(count: number): Promise<void> {
  const options = { databaseUrl: await freshMigratedDatabaseUrl(), dataDirectory: '' };
  const { seed } = await fill(options);
  // Use one connection, so that one process of PostgreSQL does all the work that is measured.
  const database = await openDatabase({ ...options, timeoutFactor: 60, databaseConnections: 1 });
  const before = await sizes();
  await fillPeople(database, seed.clients.confidential, count);
  const [grace] = await database.query<{ password_hash: string }>(
    'SELECT password_hash FROM accounts WHERE password_hash IS NOT NULL LIMIT 1',
  );
  await database.query('UPDATE accounts SET password_hash = $1', [grace?.password_hash]);
  // Remove the row versions from before the update, which would count as well.
  await database.query('VACUUM FULL accounts');
  const { record } = createActivity({ database, clock: systemClock });
  await inBatches(count, (index) =>
    record({
      action: 'signed_in',
      actor: 'person',
      accountId: accountIdOf(index),
      origin: { address: '203.0.113.7', browser: BROWSER },
    }),
  );
  const after = await sizes();

  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const people = createPeople(parts);
  const connections = createConnections({ ...parts, people });
  const reads = await microsecondsEach((index) => people.find(accountIdOf(index + 1)));
  const at = new Date();
  const clientId = seed.clients.confidential.id;
  const uses = Array.from({ length: count }, (_, index) => ({
    id: `${accountIdOf(index + 1)} ${clientId}`,
    at,
  }));
  const writes = await microsecondsEach(async (index) => {
    if (index % BATCH === 0) await connections.writeUses(uses.slice(index, index + BATCH));
  });
  await database.close();
  const rows = TABLES.map((name, index) => {
    const bytes = (after[index] ?? 0) - (before[index] ?? 0);
    return [name, (bytes / count).toFixed(0), (bytes / 1e6).toFixed(1)];
  });
  const head = [`PostgreSQL, ${count.toLocaleString('en')} people`, 'bytes per person', 'MB'];
  console.log(table(head, rows));
  console.log(`
Processor time of PostgreSQL: ${reads.toFixed(0)} us to read a person, ${writes.toFixed(0)} us to record a last use`);

  async function microsecondsEach(work: (index: number) => Promise<unknown>): Promise<number> {
    const [row] = await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const began = processorTime(row?.pid ?? 0);
    await inBatches(count, work);
    return (processorTime(row?.pid ?? 0) - began) / count;
  }

  async function sizes(): Promise<readonly number[]> {
    const found = await database.query<{ bytes: string }>(
      `SELECT pg_total_relation_size(name::regclass) AS bytes
        FROM unnest($1::text[]) WITH ORDINALITY AS tables (name, place) ORDER BY place`,
      [TABLES],
    );
    return found.map(({ bytes }) => Number(bytes));
  }
}
