/** A deployment to measure: filled with users and clients, then served by `src/main.ts` itself. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { systemClock } from '../src/base/clock.ts';
import { createOrganizations } from '../src/changes/organizations.ts';
import type { ClientKind } from '../src/clients/client.ts';
import { createClientRegistry } from '../src/clients/client-registry.ts';
import { silentChangeFeed } from '../src/storage/change-feed.ts';
import { type DatabaseOptions, openDatabase } from '../src/storage/database.ts';
import { createAccounts, createMemberships } from '../test/support/accounts.ts';
import { freshDataDirectory } from '../test/support/embedded-postgres.ts';
import { atEndOfRun } from '../test/support/end-of-run.ts';
import { eventually } from '../test/support/eventually.ts';
import type { TestClient } from '../test/support/oauth.ts';
import { freshMigratedDatabaseUrl } from '../test/support/postgres-server.ts';
import { freePort, startProgram } from '../test/support/programs.ts';
import { freshRedisUrl } from '../test/support/redis-server.ts';
import { postgresServer, redisServer } from '../test/support/requirements.ts';
import { addTestClient, type Registries, type Seed, seed } from '../test/support/seed.ts';
import { temporaryDirectory } from '../test/support/temporary-directory.ts';
import { type Command, leaveItsCore, onItsCore } from './processor.ts';

/** A program that is measured, on its own core if there is one. */
export interface StartedProgram {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export type DeploymentKind = 'embedded' | 'postgres' | 'postgres+redis';

/** The kind of production, if this machine has its servers. */
export const bestKind = (): DeploymentKind =>
  postgresServer.program !== undefined && redisServer.program !== undefined ? 'postgres+redis' : 'embedded';

/** A started service, which accepts connections. */
export interface StartedService extends StartedProgram {
  /** From the start of the process until it was ready for requests. */
  readonly secondsUntilReady: number;
}

/** Stores with users and clients, for a service that is started later and as often as wanted. */
export interface Deployment {
  readonly issuer: string;
  readonly seed: Seed;
  /** Many machine clients in addition to that of the seed. */
  readonly machines: readonly TestClient[];
  /** Partner apps, so many that none has more requests in progress than a node works on at a time. */
  readonly partners: readonly TestClient[];
  /** The stores, for other programs that use them as well. */
  readonly storage: DatabaseOptions & { readonly redisUrl: string | undefined };
  start(): Promise<StartedService>;
}

export type RunningDeployment = Deployment & StartedService;

export const TOKEN_KEY = 'token-key-of-the-bench-0123456789abcdefg';
const MACHINES = 1_000;
const PARTNERS = 8;
const ROOT = path.join(import.meta.dirname, '..');

export async function startDeployment(kind: DeploymentKind): Promise<RunningDeployment> {
  const deployment = await prepareDeployment(kind);
  return { ...deployment, ...(await deployment.start()) };
}

/** Fills the stores with users and clients, and starts nothing but the stores. */
export async function prepareDeployment(kind: DeploymentKind): Promise<Deployment> {
  leaveItsCore();
  const isEmbedded = kind === 'embedded';
  const dataDirectory = isEmbedded ? await freshDataDirectory() : '';
  const databaseUrl = isEmbedded ? undefined : await freshMigratedDatabaseUrl();
  const filled = await fill({ dataDirectory, databaseUrl });
  // Do not use the settings of this checkout. Set a proxy, as in production.
  const config = path.join(temporaryDirectory('bench'), 'gatehouse.yaml');
  await writeFile(config, 'server:\n  proxy_hops: 1\n');

  const redisUrl = kind === 'postgres+redis' ? await freshRedisUrl() : undefined;
  const port = await freePort();
  const operatorsPort = await freePort();
  const issuer = `http://localhost:${port}`;
  const operatorsUrl = `http://127.0.0.1:${operatorsPort}`;
  const variables = {
    GATEHOUSE_CONFIG: config,
    GATEHOUSE_ISSUER: issuer,
    PORT: String(port),
    GATEHOUSE_OPERATORS_PORT: String(operatorsPort),
    GATEHOUSE_COOKIE_KEYS: 'cookie-key-of-the-bench-0123456789abcdef',
    GATEHOUSE_TOKEN_KEYS: TOKEN_KEY,
    GATEHOUSE_DATA_DIR: dataDirectory,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  };

  async function start(): Promise<StartedService> {
    const begin = performance.now();
    const program = await startMeasured(['sh', '-c', manifest.scripts.start], issuer, variables);
    await waitUntilReady(operatorsUrl);
    return { ...program, secondsUntilReady: (performance.now() - begin) / 1_000 };
  }
  const storage = { dataDirectory, databaseUrl, redisUrl };
  return { issuer, storage, start, ...filled };
}

/** Waits until a load balancer would send requests. */
const waitUntilReady = (operatorsUrl: string): Promise<void> =>
  eventually(async () => {
    const { status } = await fetch(`${operatorsUrl}/readyz`);
    if (status !== 200) throw new Error(`the service is not ready: ${status}`);
  });

export async function startBareKoa(): Promise<StartedProgram> {
  const port = await freePort();
  const command = ['node', 'bench/bare-koa.ts', String(port)] as const;
  return startMeasured(command, `http://127.0.0.1:${port}`, {});
}

/** Starts a Node program as a separate process: it must not share our event loop. */
async function startMeasured(
  command: Command,
  url: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<StartedProgram> {
  const [file, ...rest] = onItsCore(command);
  // Put the folder of the running Node first, so that `npm start` uses the same Node.
  const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`;
  const program = startProgram(file, rest, {
    cwd: ROOT,
    environment: { PATH, ...variables },
    // Let the program write its log as in production, but drop it here.
    output: 'drop',
  });
  atEndOfRun(() => program.end('SIGTERM'));
  await program.waitUntil(() => fetch(url, { redirect: 'manual' }));
  return { url, pid: program.pid, stop: () => program.end('SIGTERM') };
}

export async function fill(place: DatabaseOptions): Promise<Pick<Deployment, 'seed' | 'machines' | 'partners'>> {
  // Use long timeouts, because filling the stores may take long.
  const database = await openDatabase({ ...place, timeoutFactor: 60 });
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const registries: Registries = {
    database,
    accounts: createAccounts(parts),
    organizations: createOrganizations(parts),
    memberships: createMemberships(parts),
    clients: createClientRegistry(parts),
  };
  try {
    const addClients = async (kind: ClientKind, count: number): Promise<TestClient[]> => {
      const clients: TestClient[] = [];
      while (clients.length < count) clients.push(await addTestClient(registries, `Bench ${clients.length}`, { kind }));
      return clients;
    };
    const seeded = await seed(registries);
    const machines = await addClients('machine', MACHINES);
    return { seed: seeded, machines, partners: await addClients('confidential', PARTNERS) };
  } finally {
    await database.close();
  }
}
