/** Real Redis servers: one shared by all files of a process, others for destructive tests. */
import { Redis } from 'ioredis';
import { atEndOfFile, atEndOfRun } from './end-of-run.ts';
import { madeOnce } from './made-once.ts';
import { freePort, type Program, startProgram } from './programs.ts';
import { redisServer, required } from './requirements.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export interface RedisServer {
  /** The URL of database 0, with the password if `requirepass` names one. */
  readonly url: string;
  /** The folder with its append-only files and snapshots. */
  readonly directory: string;
  /** Makes the server hang: it keeps its connections and does not answer. */
  pause(): void;
  resume(): void;
  /** Sends SIGKILL: data that is not in the append-only file is lost. */
  kill(): Promise<void>;
  /** Starts the server again after `kill`, on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** What Gatehouse requires of a Redis that keeps tokens: persistence, and no eviction. */
const DURABLE = {
  save: '',
  appendonly: 'yes',
  appendfsync: 'everysec',
  'maxmemory-policy': 'noeviction',
};

const DATABASES = 512;

const sharedServer = madeOnce(() => startRedisServer({ databases: String(DATABASES) }, atEndOfRun));
let handedOut = 0;

/** @returns the URL of an empty database of the shared server */
export async function freshRedisUrl(): Promise<string> {
  const server = await sharedServer();
  const index = handedOut % DATABASES;
  handedOut += 1;
  const url = `${server.url}/${index}`;
  if (handedOut > DATABASES) await inRedis(url, (redis) => redis.flushdb());
  return url;
}

/**
 * Starts a separate server, for a test that pauses or kills it, or needs settings that a deployment must not have.
 *
 * @param settings directives of redis.conf that replace or follow those of `DURABLE`
 * @param atEnd registers when to stop it, if the test has not done so
 */
export async function startRedisServer(
  settings: Readonly<Record<string, string>> = {},
  atEnd: (ending: () => Promise<void>) => void = atEndOfFile,
): Promise<RedisServer> {
  const command = required(redisServer);
  const directory = temporaryDirectory('redis');
  const port = await freePort();
  const password = settings.requirepass ? `:${settings.requirepass}@` : '';
  const url = `redis://${password}127.0.0.1:${port}`;
  const fixed = { bind: '127.0.0.1', port: String(port), dir: directory, daemonize: 'no' };
  const directives = Object.entries({ ...DURABLE, ...settings, ...fixed });
  const args = directives.flatMap(([name, value]) => [`--${name}`, value]);

  const start = async (): Promise<Program> => {
    const started = startProgram(command, args, { cwd: directory });
    // Wait for PING, which fails until the append-only file is read.
    await started.waitUntil(() => inRedis(url, (redis) => redis.ping()));
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
  const server: RedisServer = {
    url,
    directory,
    pause: () => program.pause(),
    resume: () => program.resume(),
    kill: () => end('SIGKILL'),
    async stop() {
      // Repeat the signal: Redis ignores SIGTERM while it writes its first append-only file after becoming a replica.
      const again = setInterval(() => void program.end('SIGTERM'), 1_000);
      await end('SIGTERM');
      clearInterval(again);
    },
    async restart() {
      program = await start();
      isRunning = true;
    },
  };
  return server;
}

/** Returns all values that a service has stored in this database; none without a URL. */
export const valuesIn = async (url: string | undefined): Promise<readonly (string | null)[]> =>
  url === undefined
    ? []
    : inRedis(url, async (redis) => Promise.all((await redis.keys('*')).map((key) => redis.get(key))));

/** Connects for this question only. */
export async function inRedis<Value>(url: string, question: (redis: Redis) => Promise<Value>): Promise<Value> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await question(redis);
  } finally {
    redis.disconnect();
  }
}
