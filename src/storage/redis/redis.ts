/** The only access to Redis: single, Sentinel or Cluster by URL, with timeouts for requests. */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, Command, Redis, type RedisOptions } from 'ioredis';
import { randomId } from '../../base/random-id.ts';
import { StorageUnavailable } from '../storage-unavailable.ts';

/**
 * With ioredis's defaults, commands wait forever if Redis hangs, and a minute if it is down. A refresh sends two
 * commands, one after the other, so twice this timeout must be below 2 s. (Three after a Redis has lost its scripts.)
 */
const COMMAND_TIMEOUT_MS = 800;
const CONNECT_TIMEOUT_MS = 1_000;
/** A connection to Redis without an answer for this long is replaced: its server may be down. */
const SOCKET_TIMEOUT_MS = 1_500;
const MAX_RETRY_PAUSE_MS = 500;
/** How long a start waits for the first connection, including the Sentinels. */
const START_TIMEOUT_MS = 5_000;

/** The options of ioredis without `replyMapping`, because the constructors of ioredis do not accept its type. */
type Options = Omit<RedisOptions, 'replyMapping'>;

/**
 * Use no pipelines: if a connection ends, ioredis resends a single command, but not those of a pipeline that was partly
 * answered, so a code could be consumed without tokens. It also follows no redirections in a pipeline.
 */
const BASE_OPTIONS = {
  // Fail soon, so that the service responds with 503. A queued command would run after its request has ended.
  maxRetriesPerRequest: 1,
  enableOfflineQueue: false,
  // A master that becomes a replica keeps its connections open. Reconnect, because the host name may now lead to
  // another master.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  lazyConnect: true,
} satisfies Options;

const retryPause = (attempt: number): number => Math.min(attempt * 50, MAX_RETRY_PAUSE_MS);

/** Replies of a Redis that cannot serve commands: memory, disk, replication, failover, login or an old version. */
const UNAVAILABLE_REPLY =
  /^(OOM|MISCONF|READONLY|NOREPLICAS|LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOAUTH|WRONGPASS|NOPERM|MAXCLIENTS|ERR max number of clients|ERR unknown command|(?:ERR )?The user executing the script can't run)/;

/**
 * Creates a client for `redis:`, `rediss:` (TLS), `redis+sentinel://host,host/master-name` and
 * `redis+cluster://host,host` (`rediss+…` with TLS), which is not connected yet.
 *
 * @param options `timeoutFactor` multiplies the timeouts (only for callers that need no answer
 *   within 2 s).
 */
export function createRedis(url: string, { timeoutFactor = 1 }: { timeoutFactor?: number } = {}): Redis | Cluster {
  const { scheme, username, password, hosts, path } = parseRedisUrl(url);
  const isTls = scheme.startsWith('rediss');
  const options: Options = {
    ...BASE_OPTIONS,
    connectTimeout: CONNECT_TIMEOUT_MS * timeoutFactor,
    commandTimeout: COMMAND_TIMEOUT_MS * timeoutFactor,
    socketTimeout: SOCKET_TIMEOUT_MS * timeoutFactor,
    retryStrategy: retryPause,
  };
  if (username) options.username = username;
  if (password) options.password = password;
  if (isTls) options.tls = {};
  const client = connectTo({ scheme, hosts, path, options, isTls });
  if (client instanceof Redis) sendTogether(client);
  // Each failed command rejects by itself; an unhandled `error` event would be printed or thrown.
  client.on('error', () => {});
  return client;
}

/**
 * Sends the commands of one turn of the event loop with one system call. Unlike in a pipeline, a failed command is
 * resent alone.
 */
function sendTogether(client: Redis): void {
  const send = client.sendCommand.bind(client);
  let corked: Redis['stream'] | undefined;
  client.sendCommand = (command, stream) => {
    const { stream: current } = client;
    if (current && current !== corked) {
      corked = current;
      current.cork();
      setImmediate(() => {
        current.uncork();
        if (corked === current) corked = undefined;
      });
    }
    return send(command, stream);
  };
}

/** The parts of an ioredis command that `BriefCommand` uses. Most are private in its types. */
interface CommandInside {
  readonly promise: Promise<unknown>;
  transformed: boolean;
  isSettled: boolean;
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
  stringifyArguments(): void;
  _convertValue(resolve: (reply: unknown) => void): (reply: unknown) => void;
  _clearTimers(): void;
}

const ParentCommand = Command as unknown as new (
  name: string,
  args: readonly (string | number)[],
  options: { readonly replyEncoding: 'utf8' },
) => CommandInside;

/**
 * A command that V8 frees soon after its reply. V8 creates a function literal that is assigned to a property, such as
 * `command.reject = () => …`, in its old generation, and until the next collection of the old generation the function
 * keeps all that it refers to. In ioredis, that is each command with its reply. (The client of a Redis Cluster still
 * assigns one.) Sent without the transformation of arguments that ioredis has for `mset` and `hset`.
 */
class BriefCommand extends ParentCommand {
  declare promise: Promise<unknown>;

  /** Replaces the method of ioredis that its constructor calls. */
  initPromise(): void {
    this.promise = new Promise((resolve, reject) => {
      this.transformed = true;
      this.stringifyArguments();
      this.resolve = this._convertValue(resolve);
      const rejectCommand = (error: Error): void => {
        this._clearTimers();
        this.isSettled = true;
        reject(error);
      };
      this.reject = rejectCommand;
    });
  }
}

/** Sends a command that most requests send. Use the methods of ioredis for rare commands. */
export function send<Reply>(redis: Redis | Cluster, name: string, args: readonly (string | number)[]): Promise<Reply> {
  const command = new BriefCommand(name, args, { replyEncoding: 'utf8' });
  redis.sendCommand(command as unknown as Command);
  return command.promise as Promise<Reply>;
}

function connectTo(
  target: Pick<RedisUrl, 'scheme' | 'hosts' | 'path'> & { options: Options; isTls: boolean },
): Redis | Cluster {
  const { scheme, hosts, path, options, isTls } = target;
  if (scheme.endsWith('+cluster')) {
    return new Cluster(hosts, {
      redisOptions: options,
      enableOfflineQueue: false,
      // A redirection may take a tenth of a second, and all redirections must fit into the time of one request.
      maxRedirections: 8,
      lazyConnect: true,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      clusterRetryStrategy: retryPause,
      retryDelayOnFailover: 100,
      // Keep host names, because TLS certificates are issued for names, not for addresses.
      ...(isTls && { dnsLookup: (address, done) => done(null, address) }),
    });
  }
  if (scheme.endsWith('+sentinel')) {
    options.sentinels = hosts;
    options.name = path;
    options.sentinelRetryStrategy = retryPause;
    options.sentinelCommandTimeout = COMMAND_TIMEOUT_MS;
    // Set both options: otherwise only the Sentinels use TLS, and tokens are sent in plain text.
    if (isTls) Object.assign(options, { enableTLSForSentinelMode: true, sentinelTLS: {} });
    const client = new Redis(options);
    const sentinels: Redis[] = [];
    client.once('connect', () => {
      for (const host of hosts) sentinels.push(followFailovers(client, { ...host, name: path, isTls }));
    });
    const disconnect = client.disconnect.bind(client);
    // Disconnect here: ioredis emits no `end` for a client that is closed while it waits.
    client.disconnect = (reconnect) => {
      disconnect(reconnect);
      if (!reconnect) for (const sentinel of sentinels) sentinel.disconnect();
    };
    return client;
  }
  const [{ host, port } = { host: 'localhost', port: 6379 }] = hosts;
  return new Redis({ ...options, host, port, db: Number(path || 0) });
}

/**
 * Disconnects from a master as soon as the Sentinel announces a new master. Otherwise the client would write to the
 * former master until its demotion, 10 seconds later. The `failoverDetector` of ioredis is not used: a failover that is
 * announced while ioredis looks for the master ends the client permanently.
 * @returns the connection to the Sentinel
 */
function followFailovers(
  client: Redis,
  { host, port, name, isTls }: { host: string; port: number; name: string; isTls: boolean },
): Redis {
  const sentinel = new Redis({
    host,
    port,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: retryPause,
    enableReadyCheck: false,
    autoResubscribe: false,
    ...(isTls && { tls: {} }),
  });
  /** Address and port of the announced master. Undefined once they were compared with those of the connection. */
  let successor: string | undefined;

  function leaveFormer(): void {
    const { remoteAddress, remotePort } = client.stream as Socket;
    const isFormer = successor !== undefined && successor !== `${remoteAddress} ${remotePort}`;
    // Forget the address of the announced master: if this Sentinel misses a later failover, the address becomes wrong.
    successor = undefined;
    if (isFormer) client.disconnect(true);
  }

  // Ignore errors: ioredis tries an unreachable Sentinel again until it is disconnected.
  sentinel.on('error', () => {});
  sentinel.on('ready', () => sentinel.subscribe('+switch-master').catch(() => {}));
  sentinel.on('message', (_channel, message: string) => {
    const [of, , , address, successorPort] = message.split(' ');
    if (of !== name) return;
    successor = `${address} ${successorPort}`;
    if (client.status === 'ready') leaveFormer();
  });
  client.on('ready', leaveFormer);
  return sentinel;
}

interface RedisUrl {
  readonly scheme: string;
  readonly username: string;
  readonly password: string;
  readonly hosts: { host: string; port: number }[];
  readonly path: string;
}

function parseRedisUrl(url: string): RedisUrl {
  const match = /^(rediss?(?:\+sentinel|\+cluster)?):\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(url);
  if (!match) throw new TypeError('not a Redis URL');
  const [, scheme = '', userinfo = '', hosts = '', path = ''] = match;
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/s.exec(userinfo) ?? [];
  const defaultPort = scheme.endsWith('+sentinel') ? 26379 : 6379;
  return {
    scheme,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    path,
    hosts: hosts.split(',').map((host) => {
      const { hostname, port } = new URL(`http://${host}`);
      return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || defaultPort) };
    }),
  };
}

/**
 * Connects for the first time. Afterwards the client reconnects by itself.
 * @throws StorageUnavailable if no server answers, no Sentinel knows a master, or the server has no database with the
 *   number in the URL
 */
export async function connectRedis(redis: Redis | Cluster): Promise<void> {
  let cause: unknown;
  const remember = (error: unknown): void => {
    cause = error;
  };
  const waiting = new AbortController();
  const givenUp = delay(START_TIMEOUT_MS, undefined, { signal: waiting.signal }).then(() => {
    throw new Error(`no connection within ${START_TIMEOUT_MS} ms`);
  });
  redis.on('error', remember);
  try {
    // The promise of a Cluster stays pending if its first attempt fails and a later one succeeds.
    const isReady = new Promise<void>((resolve) => redis.once('ready', resolve));
    await Promise.race([redis.connect(), isReady, givenUp]);
    // The requested database does not exist. ioredis would continue in database 0.
    if (/DB index/i.test(String(cause))) throw cause;
  } catch (error) {
    // The thrown error only says that there is no connection; the `error` event before it says why.
    throw new StorageUnavailable('redis', cause ?? error);
  } finally {
    redis.off('error', remember);
    waiting.abort();
  }
}

/** @throws StorageUnavailable if Redis or the network cannot serve the command now */
export async function reply<Value>(pending: Promise<Value>): Promise<Value> {
  try {
    return await pending;
  } catch (error) {
    const isReply = error instanceof Error && error.name === 'ReplyError';
    // Any other error reply is a bug of Gatehouse (a wrong type, a script error), so do not turn it into a 503.
    if (isReply && !UNAVAILABLE_REPLY.test(error.message)) throw error;
    throw new StorageUnavailable('redis', error);
  }
}

/** The key of this database's id. No key of a record can have this name. */
const IDENTITY_KEY = 'gh:identity';

/** @returns undefined if this Redis has no id yet. @throws StorageUnavailable */
export const redisIdentity = async (redis: Redis | Cluster): Promise<string | undefined> =>
  (await reply(redis.get(IDENTITY_KEY))) ?? undefined;

/** Like `redisIdentity`, but creates a missing id. If two callers create one at once, both get the first id. */
export async function ensureRedisIdentity(redis: Redis | Cluster): Promise<string | undefined> {
  const known = await redisIdentity(redis);
  if (known !== undefined) return known;
  await reply(redis.set(IDENTITY_KEY, randomId('', 16), 'NX'));
  return redisIdentity(redis);
}

export const mastersOf = (redis: Redis | Cluster): Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];

/** A setting with which Redis loses or may lose tokens, described for the operator. */
export interface RedisProblem {
  readonly setting: 'maxmemory-policy' | 'appendonly';
  /** True if INFO does not show the setting, as with some managed services. */
  readonly isUnknown: boolean;
  readonly message: string;
  readonly remedy: string;
}

/**
 * Checks on every master the two settings that decide whether acknowledged tokens are stored permanently.
 * @throws StorageUnavailable if a master does not answer
 */
export async function redisProblems(redis: Redis | Cluster): Promise<RedisProblem[]> {
  const infos = await reply(Promise.all(mastersOf(redis).map((master) => master.info())));
  const problems: RedisProblem[] = [];
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1]);
  const evicting = policies.find((policy) => policy !== undefined && policy !== 'noeviction');
  if (evicting) {
    problems.push({
      setting: 'maxmemory-policy',
      isUnknown: false,
      message: `Redis evicts keys when memory is full (maxmemory-policy ${evicting}): tokens would be lost without an error`,
      remedy: 'set `maxmemory-policy noeviction` in redis.conf',
    });
  } else if (policies.includes(undefined)) {
    problems.push({
      setting: 'maxmemory-policy',
      isUnknown: true,
      message: 'Redis does not report its maxmemory-policy',
      remedy: 'make sure that it is noeviction, because any other policy would lose tokens',
    });
  }
  const persistence = infos.map((info) => /^aof_enabled:(\d)/m.exec(info)?.[1]);
  if (persistence.some((isOn) => isOn !== '1')) {
    const isUnknown = !persistence.includes('0');
    problems.push({
      setting: 'appendonly',
      isUnknown,
      message: isUnknown
        ? 'Redis does not report whether it keeps an append-only file'
        : 'Redis keeps no append-only file',
      remedy:
        'set `appendonly yes` in redis.conf, because after a restart without it people sign in and connect their ' +
        'clients again; no revocation is undone',
    });
  }
  return problems;
}
