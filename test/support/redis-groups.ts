/** Redis servers that belong together: behind a Sentinel, or as a Cluster. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { atEndOfFile } from './end-of-run.ts';
import { eventually } from './eventually.ts';
import { freePort, startProgram } from './programs.ts';
import { inRedis, type RedisServer, startRedisServer } from './redis-server.ts';
import { redisServer, required } from './requirements.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const portOf = (server: RedisServer): string => new URL(server.url).port;

export const ask = (server: RedisServer, command: string, ...values: string[]): Promise<unknown> =>
  callOnce(Number(portOf(server)), command, ...values);

export const callOnce = (port: number, command: string, ...values: string[]): Promise<unknown> =>
  inRedis(`redis://127.0.0.1:${port}`, (redis) => redis.call(command, ...values));

export async function expectState(masters: readonly RedisServer[], state: 'ok' | 'fail'): Promise<void> {
  for (const master of masters) {
    expect(await ask(master, 'CLUSTER', 'INFO')).to.contain(`cluster_state:${state}`);
  }
}

/** The first and the last slot of each master. */
const SLOTS = [
  ['0', '5460'],
  ['5461', '10922'],
  ['10923', '16383'],
] as const;

async function startClusterNode() {
  const busPort = await freePort();
  const server = await startRedisServer({
    'cluster-enabled': 'yes',
    // Set this port, because the default, 10000 above the other port, may not be valid.
    'cluster-port': String(busPort),
    'cluster-node-timeout': '2000',
    'repl-diskless-sync-delay': '0',
    // Write to the disk always: otherwise the writes of the last second may be lost with the process.
    appendfsync: 'always',
  });
  return { server, busPort };
}

/** Adds a replica to the Cluster of this master. Resolves when it has the data of its master. */
export async function addReplica(master: RedisServer): Promise<RedisServer> {
  const { server, busPort } = await startClusterNode();
  await ask(master, 'CLUSTER', 'MEET', '127.0.0.1', portOf(server), String(busPort));
  const id = String(await ask(master, 'CLUSTER', 'MYID'));
  // Only a replica that knows the slots of all masters can replace a master.
  await eventually(() => expectState([server], 'ok'));
  await eventually(() => ask(server, 'CLUSTER', 'REPLICATE', id));
  await eventually(async () => {
    expect(await ask(server, 'INFO', 'replication')).to.contain('master_link_status:up');
  });
  return server;
}

/** Starts three masters without replicas, each with a third of the slots. */
export async function startCluster(): Promise<readonly RedisServer[]> {
  const nodes = await Promise.all([0, 1, 2].map(startClusterNode));
  const [first] = nodes;
  if (!first) throw new Error('no node');
  for (const [index, { server }] of nodes.entries()) {
    await ask(server, 'CLUSTER', 'ADDSLOTSRANGE', ...(SLOTS[index] ?? []));
    await ask(server, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    if (server === first.server) continue;
    const meet = ['127.0.0.1', portOf(first.server), String(first.busPort)];
    await ask(server, 'CLUSTER', 'MEET', ...meet);
  }
  const servers = nodes.map(({ server }) => server);
  await eventually(() => expectState(servers, 'ok'));
  return servers;
}

export const clusterUrlOf = (masters: readonly RedisServer[]): string =>
  `redis+cluster://${masters.map((master) => `127.0.0.1:${portOf(master)}`).join(',')}`;

/** Moves a slot with its keys to another master, as `redis-cli --cluster reshard` does. */
export async function moveSlot(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const name = String(slot);
  const [fromId, toId] = (await Promise.all([from, to].map((server) => ask(server, 'CLUSTER', 'MYID')))) as [
    string,
    string,
  ];
  await ask(to, 'CLUSTER', 'SETSLOT', name, 'IMPORTING', fromId);
  await ask(from, 'CLUSTER', 'SETSLOT', name, 'MIGRATING', toId);
  const target = ['127.0.0.1', portOf(to)];
  for (;;) {
    const keys = (await ask(from, 'CLUSTER', 'GETKEYSINSLOT', name, '100')) as string[];
    if (keys.length === 0) break;
    await ask(from, 'MIGRATE', ...target, '', '0', '5000', 'KEYS', ...keys);
  }
  for (const server of [to, from]) await ask(server, 'CLUSTER', 'SETSLOT', name, 'NODE', toId);
}

export interface Sentinel {
  readonly port: number;
  /** Makes the Sentinel hang: it keeps its connections and does not answer. */
  pause(): void;
  resume(): void;
}

/** Starts a Sentinel that watches the master as `warehouse`, and acts alone. */
export async function startSentinel(master: RedisServer): Promise<Sentinel> {
  const cwd = temporaryDirectory('sentinel');
  const port = await freePort();
  const file = path.join(cwd, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${cwd}`,
    `sentinel monitor warehouse 127.0.0.1 ${portOf(master)} 1`,
    'sentinel down-after-milliseconds warehouse 500',
    'sentinel failover-timeout warehouse 3000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sentinel = startProgram(required(redisServer), [file, '--sentinel'], { cwd });
  atEndOfFile(() => sentinel.end('SIGTERM'));
  await sentinel.waitUntil(async () => {
    expect(await callOnce(port, 'SENTINEL', 'replicas', 'warehouse')).to.have.length(1);
  });
  return { port, pause: () => sentinel.pause(), resume: () => sentinel.resume() };
}

export const askSentinel = (sentinel: Sentinel, question: string, ...values: string[]): Promise<unknown> =>
  callOnce(sentinel.port, 'SENTINEL', question, ...values);

/**
 * Waits until the Sentinel has announced this master, which happens a moment after its answers first name the master.
 */
export const untilMaster = (sentinel: Sentinel, expected: RedisServer): Promise<void> =>
  eventually(async () => {
    const facts = (await askSentinel(sentinel, 'master', 'warehouse')) as string[];
    expect(facts[facts.indexOf('port') + 1]).to.equal(portOf(expected));
  });
