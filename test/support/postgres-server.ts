/** Real PostgreSQL servers: one shared by all files of a process, others for destructive tests. */
import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfFile, atEndOfRun } from './end-of-run.ts';
import { folderOfRun, madeOnce } from './made-once.ts';
import { freePort, type Program, runProgram, runsAsRoot, startProgram } from './programs.ts';
import { postgresAccount, postgresServer, required } from './requirements.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

export interface PostgresServer {
  /** The URL of the maintenance database. */
  readonly url: string;
  /** The folder of its files, for example of its log. */
  readonly data: string;
  /** Creates a database, empty or as a copy of `template`. @returns its URL. */
  createDatabase(template?: string): Promise<string>;
  /** Removes a database that `createDatabase` created, even if clients are still connected. */
  dropDatabase(databaseUrl: string): Promise<void>;
  /** Makes the server hang: it keeps its connections and does not answer. */
  pause(): void;
  resume(): void;
  /** Ends the server at once, as in a crash: sessions break off, without an orderly shutdown. */
  kill(): Promise<void>;
  /** Ends the server in an orderly way, and keeps its data. */
  shutDown(): Promise<void>;
  /** Starts the server again after `kill` or `shutDown`, on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Creates an empty database on the shared server, for the rest of the file. @returns its URL */
export const freshDatabaseUrl = (): Promise<string> => databaseOfFile();

/** Like `freshDatabaseUrl`, with the schema of this version. */
export const freshMigratedDatabaseUrl = async (): Promise<string> => databaseOfFile(await migratedTemplate());

/** A database that later ones are copied from, and what its filling returned. */
export interface FilledTemplate<Value> {
  readonly value: Value;
  /** Creates a copy for the rest of the file. @returns its URL */
  copy(): Promise<string>;
}

/**
 * Creates a database with the schema, and fills it once for all files of this process.
 *
 * @param fill closes all its connections: PostgreSQL copies a database only if it has none
 */
export async function filledTemplate<Value>(
  fill: (databaseUrl: string) => Promise<Value>,
): Promise<FilledTemplate<Value>> {
  const server = await sharedServer();
  const url = await server.createDatabase(await migratedTemplate());
  const value = await fill(url);
  return { value, copy: () => databaseOfFile(nameOf(url)) };
}

const sharedServer = madeOnce(async () => {
  const server = await startPostgresServer(atEndOfRun);
  // One connection for all databases: PostgreSQL starts a process for each, at half of the cost of a small database.
  const pool = new pg.Pool({ connectionString: server.url, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true });
  pool.on('error', () => {});
  return { ...server, ...databasesOf(server.url, (statement) => pool.query(statement)) };
});

const migratedTemplate = madeOnce(async () => {
  const server = await sharedServer();
  const url = await server.createDatabase();
  const database = await openDatabase({ databaseUrl: url, dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR });
  // Close the connections: PostgreSQL copies a template only if it has none.
  await migrate(database).finally(() => database.close());
  return nameOf(url);
});

/** The folder of a server that was never started: to copy it takes a tenth of the time of `initdb`. */
const newCluster = folderOfRun('new-cluster', createCluster);

/** A folder for a server that must not have the system identifier of another one. */
export async function createCluster(): Promise<string> {
  const data = temporaryDirectory('initdb');
  if (runsAsRoot) giveTo(postgresAccount, data);
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'];
  const owner = { cwd: data, unprivileged: postgresAccount };
  runProgram(path.join(path.dirname(required(postgresServer)), 'initdb'), initdb, owner);
  return data;
}

async function databaseOfFile(template?: string): Promise<string> {
  const server = await sharedServer();
  const url = await server.createDatabase(template);
  atEndOfFile(() => server.dropDatabase(url));
  return url;
}

/**
 * Starts a separate server, for a test that pauses or kills it.
 *
 * @param atEnd registers when to stop and remove it, if the test has not done so
 * @param more settings of the server, such as `work_mem=1MB`
 * @param cluster returns the folder whose copy the server uses
 */
export async function startPostgresServer(
  atEnd: (ending: () => Promise<void>) => void = atEndOfFile,
  more: readonly string[] = [],
  cluster = newCluster,
): Promise<PostgresServer> {
  const bin = path.dirname(required(postgresServer));
  const directory = temporaryDirectory('pg');
  if (runsAsRoot) giveTo(postgresAccount, directory);
  const data = path.join(directory, 'data');
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const owner = { cwd: directory, unprivileged: postgresAccount };
  runProgram('cp', ['-R', await cluster(), data], owner);

  const start = async (): Promise<Program> => {
    const settings = [
      'listen_addresses=127.0.0.1',
      `port=${port}`,
      'unix_socket_directories=',
      // Do not wait for the disk, because the data does not outlive the run.
      'fsync=off',
      'full_page_writes=off',
      'max_connections=200',
      ...more,
    ];
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
    const started = startProgram(path.join(bin, 'postgres'), args, owner);
    await started.waitUntil(() => execute(url, 'SELECT 1'));
    return started;
  };

  const starting = start();
  // Ignore a start that failed: there is nothing to stop.
  atEnd(() => starting.then(() => server.stop()).catch(() => {}));
  let program = await starting;
  let isRunning = true;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!isRunning) return;
    isRunning = false;
    await program.end(signal);
  };
  // SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one.
  const server: PostgresServer = {
    url,
    data,
    pause: () => program.pause(),
    resume: () => program.resume(),
    kill: () => end('SIGQUIT'),
    shutDown: () => end('SIGINT'),
    async stop() {
      await end('SIGINT');
      await rm(directory, { recursive: true, force: true });
    },
    async restart() {
      program = await start();
      isRunning = true;
    },
    ...databasesOf(url, (statement) => execute(url, statement)),
  };
  return server;
}

/** Creates and removes databases of the server at this URL. @param run runs a statement there */
function databasesOf(
  url: string,
  run: (statement: string) => Promise<unknown>,
): Pick<PostgresServer, 'createDatabase' | 'dropDatabase'> {
  let databases = 0;
  return {
    async createDatabase(template = 'template1') {
      databases += 1;
      const name = `test_${databases}`;
      // For databases of this size, this strategy takes a fifth of the time of the default, which writes to the log.
      await run(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
      return databaseUrl(url, name);
    },
    async dropDatabase(dropped) {
      await run(`DROP DATABASE ${nameOf(dropped)} WITH (FORCE)`);
    },
  };
}

/** Connects for these statements only. @returns the result of the last one */
export async function execute(url: string, ...statements: readonly (string | pg.QueryConfig)[]) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    let result: pg.QueryResult | undefined;
    for (const statement of statements) result = await client.query(statement);
    return result;
  } finally {
    await client.end();
  }
}

const nameOf = (databaseUrl: string): string => new URL(databaseUrl).pathname.slice(1);

function databaseUrl(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

const giveTo = (account: string, folder: string) => execFileSync('chown', [`${account}:`, folder]);
