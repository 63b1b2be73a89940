/** The one way to Redis: single, Sentinel or Cluster by URL, with limits that keep a request short. */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { randomId } from '../../base/random-id.ts';
import { StorageUnavailable } from '../storage-unavailable.ts';
import { type AcceptRedis, guardedConnector } from './guarded-connectors.ts';
import { SCRIPT_COMMANDS } from './scripts.ts';

/**
 * Milliseconds. With the defaults a hung Redis never answers and a dead one takes a minute. A
 * command may have to wait for the pipeline before its own, so twice the limit must be below 2 s.
 */
const COMMAND_LIMIT = 800;
const CONNECT_LIMIT = 1_000;
/** A connection that has not answered for so long is replaced: it may lead nowhere any more. */
const SILENCE_LIMIT = 1_500;
const LONGEST_RETRY_PAUSE = 500;
/** How long a start waits for the first connection, Sentinels and all. */
const START_LIMIT = 5_000;

/** Without the one member whose type the constructors do not take back under strict options. */
type Options = Omit<RedisOptions, 'replyMapping'>;

const HABITS = {
  // Fail now and let the caller answer 503, rather than queue what nobody waits for.
  maxRetriesPerRequest: 1,
  enableOfflineQueue: false,
  enableAutoPipelining: true,
  // Scripts are sent by themselves. Where a connection ends, ioredis sends one command again, but
  // gives up those of a pipeline that was answered in part, and a code could be burned unused.
  autoPipeliningIgnoredCommands: [...SCRIPT_COMMANDS, 'mget'],
  // A master that became a replica keeps its connections; the name may lead elsewhere by now.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  lazyConnect: true,
} satisfies Options;

const retryPause = (attempt: number): number => Math.min(attempt * 50, LONGEST_RETRY_PAUSE);

/** Redis said that it cannot keep or find data now: memory, disk, replication, failover. */
const UNAVAILABLE_REPLY =
  /^(OOM|MISCONF|READONLY|NOREPLICAS|LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOAUTH|WRONGPASS|NOPERM|MAXCLIENTS|ERR max number of clients)/;

/**
 * A client for `redis:`, `rediss:` (TLS), `redis+sentinel://host,host/master-name` and
 * `redis+cluster://host,host` (`rediss+…` with TLS). Not connected yet.
 *
 * @param options `patience`: multiplies the limits, where nobody waits for an answer within 2 s.
 *   `accepts`: decides for each new connection whether it is used; without it all are.
 */
export function createRedis(
  url: string,
  { patience = 1, accepts }: { patience?: number; accepts?: AcceptRedis } = {},
): Redis | Cluster {
  const { scheme, username, password, hosts, path } = parseRedisUrl(url);
  const isTls = scheme.startsWith('rediss');
  const options: Options = {
    ...HABITS,
    connectTimeout: CONNECT_LIMIT * patience,
    commandTimeout: COMMAND_LIMIT * patience,
    socketTimeout: SILENCE_LIMIT * patience,
    retryStrategy: retryPause,
  };
  if (username) options.username = username;
  if (password) options.password = password;
  if (isTls) options.tls = {};
  if (accepts) options.Connector = guardedConnector(accepts, scheme.endsWith('+sentinel'));
  const client = connectTo({ scheme, hosts, path, options, isTls });
  // Each failed command reports for itself; an error nobody listens to would be printed or thrown.
  client.on('error', () => {});
  return client;
}

function connectTo({
  scheme,
  hosts,
  path,
  options,
  isTls,
}: Pick<RedisUrl, 'scheme' | 'hosts' | 'path'> & {
  options: Options;
  isTls: boolean;
}): Redis | Cluster {
  if (scheme.endsWith('+cluster')) {
    return new Cluster(hosts, {
      // One by one: of a pipeline, ioredis does not follow the commands that are sent elsewhere.
      redisOptions: { ...options, enableAutoPipelining: false },
      enableOfflineQueue: false,
      // Each may wait for a tenth of a second, and all together for less than a request may take.
      maxRedirections: 8,
      lazyConnect: true,
      slotsRefreshTimeout: CONNECT_LIMIT,
      clusterRetryStrategy: retryPause,
      retryDelayOnFailover: 100,
      // A certificate names the host it was asked for, not the address behind it.
      ...(isTls && { dnsLookup: (address, done) => done(null, address) }),
    });
  }
  if (scheme.endsWith('+sentinel')) {
    options.sentinels = hosts;
    options.name = path;
    options.sentinelRetryStrategy = retryPause;
    options.sentinelCommandTimeout = COMMAND_LIMIT;
    // Without both, TLS ends at the Sentinels and the tokens travel in clear.
    if (isTls) Object.assign(options, { enableTLSForSentinelMode: true, sentinelTLS: {} });
    const client = new Redis(options);
    const sentinels: Redis[] = [];
    client.once('connect', () => {
      for (const host of hosts)
        sentinels.push(followFailovers(client, { ...host, name: path, isTls }));
    });
    const disconnect = client.disconnect.bind(client);
    // ioredis emits no `end` for a client that is closed while it waits to reconnect.
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
 * Leaves a master as soon as this Sentinel announces its successor. Without it a client would write to
 * the former master until that is demoted, 10 seconds later. The `failoverDetector` of ioredis cannot
 * be used: it ends the client for good if it hears of a failover while the client looks for the master.
 *
 * @returns the connection to the Sentinel.
 */
function followFailovers(
  client: Redis,
  { host, port, name, isTls }: { host: string; port: number; name: string; isTls: boolean },
): Redis {
  const sentinel = new Redis({
    host,
    port,
    connectTimeout: CONNECT_LIMIT,
    retryStrategy: retryPause,
    enableReadyCheck: false,
    autoResubscribe: false,
    ...(isTls && { tls: {} }),
  });
  /** Address and port of the new master, until it is compared with the connection. */
  let successor: string | undefined;

  function leaveFormer(): void {
    const { remoteAddress, remotePort } = client.stream as Socket;
    const isFormer = successor !== undefined && successor !== `${remoteAddress} ${remotePort}`;
    // Several Sentinels announce the same failover, and this one may miss the next.
    successor = undefined;
    if (isFormer) client.disconnect(true);
  }

  // An unreachable Sentinel announces nothing; ioredis tries again until it is disconnected.
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
  const match = /^(rediss?(?:\+sentinel|\+cluster)?):\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(
    url,
  );
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
 * Connects for the first time; from then on the client comes back by itself.
 *
 * @throws StorageUnavailable when nobody answers, no Sentinel knows a master, or the server has no
 *   database of that number.
 */
export async function connectRedis(redis: Redis | Cluster): Promise<void> {
  let cause: unknown;
  const remember = (error: unknown): void => {
    cause = error;
  };
  const waiting = new AbortController();
  const givenUp = delay(START_LIMIT, undefined, { signal: waiting.signal }).then(() => {
    throw new Error(`no connection within ${START_LIMIT} ms`);
  });
  redis.on('error', remember);
  try {
    await Promise.race([redis.connect(), givenUp]);
    // ioredis goes on in database 0 where the one that was asked for is not there.
    if (/DB index/i.test(String(cause))) throw cause;
  } catch (error) {
    // What is thrown says that there is no connection; why, was told before.
    throw new StorageUnavailable('redis', cause ?? error);
  } finally {
    redis.off('error', remember);
    waiting.abort();
  }
}

/** Awaits a reply; what Redis or the way to it cannot do now becomes StorageUnavailable. */
export async function reply<Value>(pending: Promise<Value>): Promise<Value> {
  try {
    return await pending;
  } catch (error) {
    const isReply = error instanceof Error && error.name === 'ReplyError';
    // Any other reply is a fault of ours (a wrong type, a script error) and must not pass as weather.
    if (isReply && !UNAVAILABLE_REPLY.test(error.message)) throw error;
    throw new StorageUnavailable('redis', error);
  }
}

/** Milliseconds that a replica may take to follow. */
const REPLICA_LIMIT = 300;

/**
 * Whether a replica has what was written to this key until now; true where its master has none.
 *
 * @throws StorageUnavailable
 */
export async function isReplicated(redis: Redis | Cluster, key: string): Promise<boolean> {
  // On a connection of its own, for what comes behind WAIT on one has to wait as well.
  const own = redis instanceof Cluster ? redis.duplicate() : redis.duplicate();
  own.on('error', () => {});
  try {
    await connectRedis(own);
    // WAIT is about the writes of its own connection and all before them, so there must be one. The
    // braces lead it to the master of the key.
    const asked = own.pipeline().set(`gh:{${key}}`, '', 'PX', 1_000);
    const answers = (await reply(asked.info('replication').wait(1, REPLICA_LIMIT).exec())) ?? [];
    const failed = answers.find(([error]) => error)?.[0];
    if (failed) throw new StorageUnavailable('redis', failed);
    const [, replication, followers] = answers.map(([, answer]) => answer);
    return Number(followers) > 0 || /^connected_slaves:0\b/m.test(String(replication));
  } finally {
    own.disconnect();
  }
}

/** One key beside the records, so that two databases of one Redis can be told apart. */
const IDENTITY_KEY = 'gh:identity';

/**
 * The random id that is kept in this Redis database; undefined if there is none.
 *
 * @throws StorageUnavailable
 */
export const redisIdentity = async (redis: Redis | Cluster): Promise<string | undefined> =>
  (await reply(redis.get(IDENTITY_KEY))) ?? undefined;

/** The same, which is made if there is none: of two nodes at once, the first one's stays. */
export async function ensureRedisIdentity(redis: Redis | Cluster): Promise<string | undefined> {
  const known = await redisIdentity(redis);
  if (known !== undefined) return known;
  await reply(redis.set(IDENTITY_KEY, randomId('', 16), 'NX'));
  return redisIdentity(redis);
}

export const mastersOf = (redis: Redis | Cluster): Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];

/** A setting of Redis under which tokens would be lost, for the operator. */
export interface RedisProblem {
  readonly setting: 'maxmemory-policy' | 'appendonly';
  readonly message: string;
  readonly remedy: string;
}

/**
 * Asks every master for the two settings that decide whether an acknowledged token stays.
 * @throws StorageUnavailable when one does not answer.
 */
export async function redisProblems(redis: Redis | Cluster): Promise<RedisProblem[]> {
  const infos = await reply(Promise.all(mastersOf(redis).map((master) => master.info())));
  const problems: RedisProblem[] = [];
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'unknown');
  const evicting = policies.find((policy) => policy !== 'noeviction');
  if (evicting) {
    problems.push({
      setting: 'maxmemory-policy',
      message: `Redis evicts keys when memory is full (maxmemory-policy ${evicting}): tokens would vanish silently`,
      remedy: 'set `maxmemory-policy noeviction` in redis.conf',
    });
  }
  if (infos.some((info) => !/^aof_enabled:1/m.test(info))) {
    problems.push({
      setting: 'appendonly',
      message: 'Redis keeps no append-only file: a restart would lose tokens and undo revocations',
      remedy:
        'set `appendonly yes` in redis.conf, or accept the loss with storage.accept_volatile_redis: true',
    });
  }
  return problems;
}
