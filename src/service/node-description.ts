/** Describes this node in the database, so that operators can compare the nodes. */
import packageFile from '../../package.json' with { type: 'json' };
import { comparableSettings } from '../config/node-settings.ts';
import type { Settings } from '../config/settings.ts';
import { type Readiness, reasonNotReady } from '../host/readiness.ts';
import type { NodeDescription, NodeState, ReloadAnswer } from '../storage/nodes.ts';

export async function describeNode(parts: {
  readonly settings: Settings;
  readonly readiness: Readiness;
  /** False until the node accepts requests. */
  readonly isListening: boolean;
  /** Reads the id of Redis; undefined without Redis. */
  readonly redisIdentity: (() => Promise<string | undefined>) | undefined;
  /** True if any request had an `X-Forwarded-For` header. */
  readonly isForwarded: boolean;
  readonly reload: ReloadAnswer;
}): Promise<NodeDescription> {
  const { settings, readiness, isListening, isForwarded, redisIdentity, reload } = parts;
  const { server, storage } = settings;
  // Ignore an unavailable Redis, because the state of the node reports it.
  const redis = redisIdentity ? await redisIdentity().catch(() => undefined) : 'none';
  return {
    state: isListening || readiness.isDraining ? await stateOf(readiness) : 'starting',
    runsWith: {
      version: packageFile.version,
      settings: comparableSettings(settings),
      ...(redis !== undefined && { redis }),
      databaseConnections: storage.databaseConnections,
      ignoresForwardedFor: isForwarded && server.proxyHops === 0,
      reload,
    },
  };
}

async function stateOf(readiness: Readiness): Promise<NodeState> {
  if (readiness.isDraining) return 'leaving';
  return reasonNotReady(await readiness.ask()) === undefined ? 'ready' : 'not_ready';
}
