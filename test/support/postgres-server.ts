/** Real PostgreSQL servers for the tests: one shared by the run, others for tests that harm them. */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { atEndOfRun } from './end-of-run.ts';
import { freePort, type Program, runProgram, runsAsRoot, startProgram } from './programs.ts';
import { postgresAccount, postgresServer, required } from './requirements.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export interface PostgresServer {
  /** The URL of the maintenance database. */
  readonly url: string;
  /** Creates a database, empty or as a copy of `template`. @returns its URL. */
  createDatabase(template?: string): Promise<string>;
  /** The server hangs: it keeps its connections and does not answer. */
  pause(): void;
  resume(): void;
  /** Ends at once, as in a crash: sessions are cut, nothing is written down in order. */
  kill(): Promise<void>;
  /** Starts again, on the same port and data, after `kill`. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** An empty database on the server that the run shares. @returns its URL. */
export async function freshDatabaseUrl(): Promise<string> {
  return (await sharedServer()).createDatabase();
}

/** The same with the schema of this version already in it. */
export async function freshMigratedDatabaseUrl(): Promise<string> {
  const server = await sharedServer();
  migratedTemplate ??= createMigratedTemplate(server);
  return server.createDatabase(await migratedTemplate);
}

/** A server of its own, for a test that pauses or kills it. */
export async function startPostgresServer(): Promise<PostgresServer> {
  const bin = path.dirname(required(postgresServer));
  const directory = temporaryDirectory('pg');
  const data = path.join(directory, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (runsAsRoot) giveTo(postgresAccount, directory, data);
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const owner = { cwd: directory, unprivileged: postgresAccount };
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'];
  runProgram(path.join(bin, 'initdb'), initdb, owner);

  const start = async (): Promise<Program> => {
    const settings = [
      ...['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='],
      // Nothing here outlives the run, so nothing waits for the disk.
      ...['fsync=off', 'full_page_writes=off', 'max_connections=200'],
    ];
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
    const started = startProgram(path.join(bin, 'postgres'), args, owner);
    await started.waitUntil(() => execute(url, 'SELECT 1'));
    return started;
  };

  const starting = start();
  atEndOfRun(() => starting.then(() => server.stop()));
  let program = await starting;
  let isRunning = true;
  let databases = 0;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!isRunning) return;
    isRunning = false;
    await program.end(signal);
  };
  // SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one.
  const server: PostgresServer = {
    url,
    pause: () => program.pause(),
    resume: () => program.resume(),
    kill: () => end('SIGQUIT'),
    stop: () => end('SIGINT'),
    async restart() {
      program = await start();
      isRunning = true;
    },
    async createDatabase(template = 'template1') {
      databases += 1;
      const name = `test_${databases}`;
      await execute(url, `CREATE DATABASE ${name} TEMPLATE ${template}`);
      return databaseUrl(url, name);
    },
  };
  return server;
}

let shared: Promise<PostgresServer> | undefined;
let migratedTemplate: Promise<string> | undefined;

function sharedServer(): Promise<PostgresServer> {
  shared ??= startPostgresServer();
  return shared;
}

async function createMigratedTemplate(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase();
  const database = await openDatabase({ databaseUrl: url, dataDirectory: '' });
  // A template is copied only while nobody is connected to it.
  await migrate(database).finally(() => database.close());
  return new URL(url).pathname.slice(1);
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

function databaseUrl(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

function giveTo(account: string, ...files: string[]): void {
  const id = (flag: string): number => Number(execFileSync('id', [flag, account]).toString());
  for (const file of files) chownSync(file, id('-u'), id('-g'));
}
