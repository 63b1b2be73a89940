/** Measures the memory of tokens in Redis and the size of people in PostgreSQL, written by the real stores. */
import { createActivity } from '../src/accounts/activity/activity.ts';
import { systemClock } from '../src/base/clock.ts';
import { newValue, randomId } from '../src/base/random-id.ts';
import { openDatabase } from '../src/storage/database.ts';
import { createRedis } from '../src/storage/redis/redis.ts';
import { createRedisStore } from '../src/storage/redis/store.ts';
import { freshMigratedDatabaseUrl } from '../test/support/postgres-server.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { accountIdOf, fillPeople, issuing } from './connected-people.ts';
import { fill } from './deployment.ts';
import { table } from './table.ts';

const HOUR = 3_600;
/** Number of parallel writes: enough to keep Redis busy, few enough to keep its buffers small. */
const BATCH = 500;

async function inBatches(count: number, write: (index: number) => Promise<unknown>): Promise<void> {
  for (let written = 0; written < count; written += BATCH) {
    const size = Math.min(BATCH, count - written);
    await Promise.all(Array.from({ length: size }, (_, index) => write(written + index)));
  }
}

/** Fills a separate Redis with `count` records of each kind, and prints the memory they take. */
export async function measureMemory(count: number): Promise<void> {
  // Turn off the append-only file, which is on disk, and whose buffers would distort the result.
  const server = await startRedisServer({ appendonly: 'no' });
  // Do not use the timeout of production: 16,384 simultaneous commands take long on a busy machine.
  const redis = createRedis(server.url, { timeoutFactor: 60 });
  await redis.connect();
  const store = createRedisStore({ redis, clock: systemClock });
  const issue = issuing(store);
  const clientId = randomId('gate_ci_', 22);
  const approval = {
    accountId: randomId('acc_', 16),
    clientId,
    redirectUri: 'https://partner.example/callback',
    codeChallenge: randomId('', 43),
  };
  const expiresAt = Math.floor(Date.now() / 1000) + HOUR;
  const kinds = {
    // Access tokens are computed, not stored, so they take no memory, however many are active.
    'authorizations with live tokens': () => issue(approval),
    'machine access tokens': () =>
      store.write('machine_token', newValue('machine_token'), [clientId, HOUR, 0, 'abcdefgh'], expiresAt),
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
  const database = await openDatabase({ ...options, timeoutFactor: 60 });
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
  await database.close();
  const rows = TABLES.map((name, index) => {
    const bytes = (after[index] ?? 0) - (before[index] ?? 0);
    return [name, (bytes / count).toFixed(0), (bytes / 1e6).toFixed(1)];
  });
  const head = [`PostgreSQL, ${count.toLocaleString('en')} people`, 'bytes per person', 'MB'];
  console.log(table(head, rows));

  async function sizes(): Promise<readonly number[]> {
    const found = await database.query<{ bytes: string }>(
      `SELECT pg_total_relation_size(name::regclass) AS bytes
        FROM unnest($1::text[]) WITH ORDINALITY AS tables (name, place) ORDER BY place`,
      [TABLES],
    );
    return found.map(({ bytes }) => Number(bytes));
  }
}
