/** For commands: checks that a deployment exists, and describes it. Only the start of a service creates deployments. */
import { hasDatabase } from '../base/data-directory.ts';
import type { Settings } from '../config/settings.ts';
import { type OpenDatabase, placeOf } from '../storage/database.ts';
import { hasSchema } from '../storage/migrate.ts';

type Described = Pick<Settings, 'issuer'> & {
  readonly storage: Pick<Settings['storage'], 'dataDirectory' | 'databaseUrl' | 'redisUrl'>;
};

/** Thrown if no service ever started with the stores of the present settings. */
export class NoDeployment extends Error {
  readonly code = 'no_deployment';
  readonly remedy =
    'Start the service there first, or select its stores. With systemd: run `gatehouse …` as ' +
    'root. In a container: run the command inside it. Elsewhere: set GATEHOUSE_CONFIG, ' +
    'DATABASE_URL and REDIS_URL to the values of the service.';

  constructor(where: string) {
    super(`There is no Gatehouse deployment in ${where}: nothing was done.`);
    this.name = 'NoDeployment';
  }
}

/** @throws NoDeployment if the settings name an embedded database that does not exist */
export function requireEmbeddedDatabase({ databaseUrl, dataDirectory }: Described['storage']): void {
  if (databaseUrl === undefined && !hasDatabase(dataDirectory)) {
    throw new NoDeployment(`the data directory ${dataDirectory}`);
  }
}

/** @throws NoDeployment if the database on the server is empty */
export async function requireTables(database: OpenDatabase, { databaseUrl }: Described['storage']): Promise<void> {
  if (databaseUrl === undefined || (await hasSchema(database))) return;
  throw new NoDeployment(`the database ${placeOf(databaseUrl)}, which is empty`);
}

/** Returns a text that names the issuer and the stores, without passwords. */
export function describeDeployment({ issuer, storage }: Described): string {
  const { databaseUrl, dataDirectory, redisUrl } = storage;
  const database =
    databaseUrl === undefined ? `the embedded PostgreSQL in ${dataDirectory}` : `PostgreSQL ${placeOf(databaseUrl)}`;
  return `${issuer}, ${database}${redisUrl === undefined ? '' : `, Redis ${placeOf(redisUrl)}`}`;
}
