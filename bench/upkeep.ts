/** Measures what PostgreSQL spends on expired rows, and how much the tables grow by refreshes. */
import { setTimeout as delay } from 'node:timers/promises';
import { vacuumJob } from '../src/storage/cleaning.ts';
import type { Database } from '../src/storage/queries.ts';
import { scrape } from '../test/support/metrics.ts';
import type { Deployment, StartedService } from './deployment.ts';
import type { FilledStores } from './filled-stores.ts';
import { onIdleCore, processorTimeOfTree } from './processor.ts';
import { storeProcesses } from './store-processes.ts';
import { table } from './table.ts';

/** The pause between two rounds of the cleaning (src/storage/cleaning.ts). */
const ROUND_SECONDS = 60;
const ROUNDS = 3;
/** All authorizations would have expired after this many minutes. */
const MINUTES_TO_EXPIRE = 100;
const REMOVED = 'gatehouse_cleaning_removed_total{task="tokens"}';

/**
 * Compares minutes in which rows expire with one in which none does. The service cleans by itself,
 * as in production.
 */
export async function measureRemoval(
  deployment: Deployment,
  service: StartedService,
  stores: FilledStores,
  authorizations: number,
): Promise<void> {
  const each = Math.ceil(authorizations / MINUTES_TO_EXPIRE);
  const { postgres } = await storeProcesses(deployment, stores.database);
  const pids = [...(postgres === undefined ? [] : [postgres]), service.pid];
  const minute = async (): Promise<{ ms: number; removed: number }> => {
    const cpu = () => pids.reduce((sum, pid) => sum + processorTimeOfTree(pid), 0);
    const removed = async () => (await scrape(deployment)).get(REMOVED) ?? 0;
    const before = { cpu: cpu(), removed: await removed() };
    await delay(ROUND_SECONDS * 1_000);
    return {
      ms: (cpu() - before.cpu) / 1_000,
      removed: (await removed()) - before.removed,
    };
  };

  const rows: string[][] = [];
  const idle = await minute();
  const add = (name: string, { ms, removed }: typeof idle): void => {
    const more = ms - idle.ms;
    rows.push([
      name,
      removed.toLocaleString('en'),
      ms.toFixed(0),
      `${((more / (ROUND_SECONDS * 1_000)) * 100).toFixed(2)} %`,
      removed > 0 ? ((more / removed) * 1_000).toFixed(0) : '',
    ]);
  };
  add('idle', idle);
  for (let round = 1; round <= ROUNDS; round += 1) {
    await stores.writeExpired(each);
    add(`minute ${round}`, await minute());
  }
  console.log(table(['expired rows', 'removed', 'CPU ms', 'more than idle, of a core', 'us each'], rows));
  console.log(`CPU of ${postgres === undefined ? 'the service' : 'PostgreSQL and the service'}.
All authorizations would expire in ${MINUTES_TO_EXPIRE} minutes.\n`);
}

const SIZES = `SELECT pg_table_size('authorizations')::text AS rows,
  pg_relation_size('authorizations_pkey')::text AS key,
  pg_relation_size('authorizations_forgotten_at')::text AS forgotten_at`;

type Sizes = Readonly<Record<'rows' | 'key' | 'forgotten_at', string>>;

/**
 * In production an authorization is refreshed at most once an hour, when its access token expires.
 * Here an hour takes a minute, and so the vacuum looks every second, instead of every minute, for
 * tables that need it. Otherwise one vacuum would follow on many refreshes of each row.
 */
const STEPS_PER_ROUND = 60;
const STEP_MS = 1_000;

/**
 * Refreshes directly in the store, each authorization at most once a minute, and compares the size
 * of the table with a rewritten one.
 */
export async function measureBloat(
  stores: FilledStores,
  { authorizations, refreshes }: { readonly authorizations: number; readonly refreshes: number },
): Promise<void> {
  const { database } = stores;
  const sizes = async (): Promise<Sizes> => {
    const [row] = await database.query<Sizes>(SIZES);
    if (!row) throw new Error('the database did not answer');
    return row;
  };
  const before = await sizes();
  const vacuum = await startVacuum(database);
  let seconds = 0;
  await onIdleCore(async () => {
    const step = Math.ceil(authorizations / STEPS_PER_ROUND);
    for (let left = refreshes; left > 0; left -= step) {
      const began = performance.now();
      await stores.refreshAll(Math.min(left, step));
      const ms = performance.now() - began;
      seconds += ms / 1_000;
      await delay(Math.max(0, STEP_MS - ms));
    }
  });
  await vacuum.stop();
  const after = await sizes();
  const [vacuums] = await database.query<{ count: string }>(
    `SELECT (vacuum_count + autovacuum_count)::text AS count FROM pg_stat_user_tables
      WHERE relname = 'authorizations'`,
  );
  // Rewrites the table and its indexes without any free space.
  await database.query('VACUUM FULL authorizations');
  const compact = await sizes();

  const total = (of: Sizes): number => Object.values(of).reduce((sum, size) => sum + Number(size), 0);
  const row = (name: string, of: Sizes): string[] => [
    name,
    ...[of.rows, of.key, of.forgotten_at, total(of)].map((size) => (Number(size) / 1e6).toFixed(1)),
    (total(of) / total(compact)).toFixed(2),
  ];
  console.log(
    table(
      ['authorizations', 'table MB', 'primary key', 'expiry index', 'all', 'ratio'],
      [
        row('before the refreshes', before),
        row(`after ${refreshes.toLocaleString('en')} refreshes`, after),
        row('rewritten', compact),
      ],
    ),
  );
  console.log(
    `${Math.round(refreshes / seconds).toLocaleString('en')} refreshes a second without the pauses, vacuumed ${vacuums?.count} times\n`,
  );
}

/** Vacuums as the service does with the embedded database, or has a real server look more often. */
async function startVacuum(database: Database): Promise<{ stop(): Promise<void> }> {
  if (!database.embedded) {
    await database.query(`ALTER SYSTEM SET autovacuum_naptime = '${STEP_MS}ms'`);
    await database.query('SELECT pg_reload_conf()');
    return { stop: async () => {} };
  }
  const work = vacuumJob(database);
  const stopping = new AbortController();
  const { signal } = stopping;
  async function run(): Promise<void> {
    while (!signal.aborted) {
      await work(Number.POSITIVE_INFINITY);
      await delay(STEP_MS, undefined, { signal }).catch(() => {});
    }
  }
  const done = run();
  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}
