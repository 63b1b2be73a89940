/** A deployment to measure: filled with people and clients, then served by `src/main.ts` itself. */
import path from 'node:path';
import { createAccountRegistry } from '../src/accounts/account-registry.ts';
import { createMemberships } from '../src/accounts/memberships.ts';
import { createOrganizations } from '../src/accounts/organizations.ts';
import { createClientRegistry } from '../src/clients/client-registry.ts';
import { systemClock } from '../src/clock.ts';
import { silentChangeFeed } from '../src/storage/change-feed.ts';
import { type DatabaseOptions, openDatabase } from '../src/storage/database.ts';
import { freshDataDirectory } from '../test/support/embedded-postgres.ts';
import { atEndOfRun } from '../test/support/end-of-run.ts';
import type { TestClient } from '../test/support/oauth.ts';
import { freshMigratedDatabaseUrl } from '../test/support/postgres-server.ts';
import { freePort, type Program, startProgram } from '../test/support/programs.ts';
import { freshRedisUrl } from '../test/support/redis-server.ts';
import { type Registries, type Seed, seed } from '../test/support/seed.ts';

export interface RunningDeployment {
  readonly issuer: string;
  readonly seed: Seed;
  /** Many machine clients beside that of the seed. */
  readonly machines: readonly TestClient[];
  stop(): Promise<void>;
}

const MACHINES = 1_000;
const ROOT = path.join(import.meta.dirname, '..');

export async function startDeployment(
  kind: 'embedded' | 'postgres+redis',
): Promise<RunningDeployment> {
  const isEmbedded = kind === 'embedded';
  const dataDirectory = isEmbedded ? await freshDataDirectory() : '';
  const databaseUrl = isEmbedded ? undefined : await freshMigratedDatabaseUrl();
  const filled = await fill({ dataDirectory, databaseUrl });

  const port = await freePort();
  const issuer = `http://localhost:${port}`;
  const service = await startNode('src/main.ts', [], issuer, {
    GATEHOUSE_ISSUER: issuer,
    PORT: String(port),
    GATEHOUSE_OPERATORS_PORT: '0',
    GATEHOUSE_COOKIE_KEYS: 'cookie-key-of-the-bench-0123456789abcdef',
    GATEHOUSE_TOKEN_KEYS: 'token-key-of-the-bench-0123456789abcdefg',
    GATEHOUSE_DATA_DIR: dataDirectory,
    DATABASE_URL: databaseUrl,
    REDIS_URL: isEmbedded ? undefined : await freshRedisUrl(),
  });
  return { issuer, ...filled, stop: () => service.end('SIGTERM') };
}

/** A Koa with nothing in it. @returns its URL and how to stop it. */
export async function startBareKoa(): Promise<{ url: string; stop(): Promise<void> }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const koa = await startNode('bench/bare-koa.ts', [String(port)], url, {});
  return { url, stop: () => koa.end('SIGTERM') };
}

/** A Node program as a process of its own: what is measured must not share our event loop. */
async function startNode(
  file: string,
  args: readonly string[],
  url: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<Program> {
  const program = startProgram(process.execPath, [file, ...args], {
    cwd: ROOT,
    environment: { PATH: process.env.PATH, ...variables },
    // It writes its log as it does in production, and nobody here reads it.
    output: 'drop',
  });
  atEndOfRun(() => program.end('SIGTERM'));
  await program.waitUntil(() => fetch(url, { redirect: 'manual' }));
  return program;
}

async function fill(place: DatabaseOptions): Promise<{ seed: Seed; machines: TestClient[] }> {
  const database = await openDatabase(place);
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const registries: Registries = {
    database,
    accounts: createAccountRegistry(parts),
    organizations: createOrganizations(parts),
    memberships: createMemberships(parts),
    clients: createClientRegistry(parts),
  };
  try {
    const seeded = await seed(registries);
    const machines: TestClient[] = [];
    for (let number = 1; number <= MACHINES; number += 1) {
      const { client, secret = '' } = await registries.clients.add({
        kind: 'machine',
        name: `Machine ${number}`,
        redirectUris: [],
        isNative: false,
      });
      machines.push({ id: client.id, secret, redirectUri: '' });
    }
    return { seed: seeded, machines };
  } finally {
    await database.close();
  }
}
