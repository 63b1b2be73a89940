/** What a node says of itself in the database, so that operators can compare it with the others. */
import { readFile } from 'node:fs/promises';
import packageFile from '../../package.json' with { type: 'json' };
import { comparableSettings } from '../config/node-settings.ts';
import type { Settings } from '../config/settings.ts';
import { type Readiness, reasonNotReady } from '../host/readiness.ts';
import type { NodeDescription, NodeState } from '../storage/nodes.ts';

export async function describeNode(parts: {
  readonly settings: Settings;
  readonly readiness: Readiness;
  /** Whether it takes requests yet. */
  readonly isListening: boolean;
  /** Undefined without Redis. */
  readonly redisIdentity: (() => Promise<string | undefined>) | undefined;
  /** Whether a request brought `X-Forwarded-For`. */
  readonly isForwarded: boolean;
}): Promise<NodeDescription> {
  const { settings, readiness, isListening, isForwarded, redisIdentity } = parts;
  const { server } = settings;
  // A Redis that is away is said by the state.
  const redis = redisIdentity ? await redisIdentity().catch(() => undefined) : 'none';
  const openFiles = await openFilesLimit();
  return {
    state: isListening || readiness.isDraining ? await stateOf(readiness) : 'starting',
    runsWith: {
      version: packageFile.version,
      settings: comparableSettings(settings),
      ...(redis !== undefined && { redis }),
      ...(openFiles !== undefined && { openFiles }),
      maxConnections: server.maxConnections,
      ignoresForwardedFor: isForwarded && server.proxyHops === 0,
    },
  };
}

async function stateOf(readiness: Readiness): Promise<NodeState> {
  if (readiness.isDraining) return 'leaving';
  return reasonNotReady(await readiness.ask()) === undefined ? 'ready' : 'not_ready';
}

/** How many files this process may open (the soft limit); undefined where there is no /proc. */
async function openFilesLimit(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const [, limit] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return limit === undefined ? undefined : Number(limit);
}
