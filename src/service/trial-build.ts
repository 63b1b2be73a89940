/** Builds the parts of a service to check that this is possible; opens no connection. */
import pg from 'pg';
import { pino } from 'pino';
import { createEndings } from '../authorizations/endings.ts';
import { systemClock } from '../base/clock.ts';
import type { Inspection } from '../config/load.ts';
import { type ConfigurationProblem, ConfigurationProblems } from '../config/problems.ts';
import { locationOf } from '../config/validate.ts';
import { createChangeStreams } from '../provider/introspection-changes.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import { createPostgresStore } from '../storage/postgres-store.ts';
import type { Database } from '../storage/queries.ts';
import { createRedis } from '../storage/redis/redis.ts';
import { createRedisStore } from '../storage/redis/store.ts';
import { postgresLimits, redisLimits } from '../storage/shared-limits.ts';
import { createApplication } from './application.ts';
import { createCommonRegistries } from './common-registries.ts';

/**
 * Builds the stores' clients, without connecting, and the application: engine, pages, host.
 *
 * @throws ConfigurationProblems if PostgreSQL's client refuses its URL or a file that it names
 */
export async function buildUnopened({ settings, overrides }: Inspection): Promise<void> {
  const { databaseUrl, redisUrl } = settings.storage;
  const problem = databaseUrl === undefined ? undefined : databaseProblem(databaseUrl);
  if (problem) {
    const path = locationOf('storage.database_url', overrides);
    throw new ConfigurationProblems([{ path, ...problem }]);
  }

  const clock = systemClock;
  const log = pino({ level: 'silent' });
  const redis = redisUrl === undefined ? undefined : createRedis(redisUrl);
  const store = redis ? createRedisStore({ redis, clock }) : createPostgresStore({ database: unopened, clock });
  const { createAttemptLimit } = redis ? redisLimits(redis) : postgresLimits({ database: unopened, clock });
  const registries = createCommonRegistries({
    database: unopened,
    changes: silentChangeFeed,
    clock,
    log,
    issuer: settings.issuer,
    brandName: () => settings.brand.name,
  });
  const application = createApplication({
    settings,
    clock,
    log,
    database: unopened,
    store,
    registries,
    createAttemptLimit,
    endings: createEndings({ store, revocations: registries.revocations }),
    changeStreams: createChangeStreams(silentChangeFeed),
  });
  await application.close();
  // Nothing was queued, so closing the registries writes nothing.
  await registries.close();
  redis?.disconnect();
}

/** Creates a client, which reads the files that the URL names (`sslrootcert=…`). */
function databaseProblem(connectionString: string): Omit<ConfigurationProblem, 'path'> | undefined {
  try {
    new pg.Client({ connectionString });
    return undefined;
  } catch (error) {
    const isFile = error instanceof Error && 'syscall' in error;
    return {
      message: isFile
        ? `names a file that cannot be read (${error.message})`
        : 'is not a URL that the PostgreSQL client accepts',
      remedy: 'correct the URL, or make the file that it names readable for this process',
    };
  }
}

const refuse = (): Promise<never> => Promise.reject(new Error('a trial build opens no connections'));

const unopened: Database = {
  embedded: true,
  now: () => 'now()',
  query: refuse,
  transaction: refuse,
  inTurn: refuse,
  close: async () => {},
};
