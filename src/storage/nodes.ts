/** The nodes of this deployment: each writes its state and its settings every ten seconds. */
import type { Clock } from '../base/clock.ts';
import type { Queries } from './queries.ts';

/** The time between two heartbeats of a node. */
export const HEARTBEAT_MS = 10_000;
/** A node without a heartbeat for this long is silent: frozen, killed, or disconnected. */
const SILENT_AFTER_MS = 3 * HEARTBEAT_MS;
/** How long keys and clock of a silent node are still compared, because a frozen node may continue. */
const FROZEN_FOR_MS = 180_000;
/** How long a silent node is still listed, so that `doctor` can name it. */
const FORGOTTEN_AFTER_MS = 3_600_000;

export type NodeState = 'starting' | 'ready' | 'not_ready' | 'leaving';

/** Values that all nodes of a deployment should share, and values that limit a node's load. */
export interface RunsWith {
  readonly version: string;
  /** Keys are names in the settings file; long values are fingerprints. Contains no secrets. */
  readonly settings: Readonly<Record<string, string>>;
  /** The id stored in the node's Redis; `none` without Redis, absent if Redis did not return an id. */
  readonly redis?: string;
  /** How many connections to the database the node may open, not counting the one for notifications. */
  readonly databaseConnections: number;
  /** True if the node received `X-Forwarded-For` although `server.proxy_hops` is 0. */
  readonly ignoresForwardedFor: boolean;
  readonly reload: ReloadAnswer;
}

/** How the latest reload of a node ended. */
export interface ReloadAnswer {
  /** The latest request that the answer covers; 0 before the first. */
  readonly request: number;
  /** Absent before the first reload. */
  readonly at?: string;
  /** Present if the previous settings stay in force: lines without values of the file. */
  readonly problems?: readonly string[];
}

export interface NodeDescription {
  readonly state: NodeState;
  readonly runsWith: RunsWith;
}

/** Fingerprints of a node's keys; the current key comes first. */
export interface NodeKeys {
  readonly node: string;
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

/** Writes the row of this node. */
export async function writeNode(
  database: Queries,
  { node, cookieKeys, tokenKeys }: NodeKeys,
  { state, runsWith }: NodeDescription,
  now: number,
): Promise<void> {
  await database.query(
    `INSERT INTO node_keys AS known
        (node, seen_at, noted_at, cookie_keys, token_keys, state, ready_since, runs_with)
      VALUES ($1, $2, clock_timestamp(), $3, $4, $5::text,
        CASE $5::text WHEN 'ready' THEN clock_timestamp() END, $6)
      ON CONFLICT (node) DO UPDATE SET seen_at = excluded.seen_at, noted_at = excluded.noted_at,
        cookie_keys = excluded.cookie_keys, token_keys = excluded.token_keys,
        state = excluded.state, runs_with = excluded.runs_with,
        ready_since = CASE WHEN excluded.state = 'ready' AND known.state = 'ready'
          THEN known.ready_since ELSE excluded.ready_since END`,
    [node, new Date(now), cookieKeys, tokenKeys, state, runsWith],
  );
}

/** Deletes the rows of nodes that have been silent for an hour. */
export async function removeForgottenNodes(database: Queries, now: number): Promise<void> {
  // Compare both times: noted_at is by the database's clock, so a node with a wrong clock neither
  // deletes rows of other nodes nor loses its own.
  await database.query(
    `DELETE FROM node_keys WHERE seen_at < $1
      AND noted_at < clock_timestamp() - $2 * interval '1 millisecond'`,
    [new Date(now - FORGOTTEN_AFTER_MS), FORGOTTEN_AFTER_MS],
  );
}

export async function removeNode(database: Queries, node: string): Promise<void> {
  await database.query('DELETE FROM node_keys WHERE node = $1', [node]);
}

/** Returns the nodes with a heartbeat within the last three minutes. */
export const runningNodes = (database: Queries, clock: Clock): Promise<NodeKeys[]> =>
  database.query(
    `SELECT node, cookie_keys AS "cookieKeys", token_keys AS "tokenKeys"
      FROM node_keys WHERE seen_at >= $1 ORDER BY node`,
    [new Date(clock() - FROZEN_FOR_MS)],
  );

/** Compares each node's clock with the database's; `aheadMs` is negative for a clock that is behind. */
export async function nodeClocks(database: Queries): Promise<{ readonly node: string; readonly aheadMs: number }[]> {
  const rows = await database.query<{ node: string; ahead: string }>(
    `SELECT node, extract(epoch FROM seen_at - noted_at) * 1000 AS ahead FROM node_keys
      WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY node`,
    [FROZEN_FOR_MS],
  );
  return rows.map(({ node, ahead }) => ({ node, aheadMs: Number(ahead) }));
}

/** A node as its row describes it. Times are by the database's clock. */
export interface ListedNode {
  readonly node: string;
  /** `silent`: the heartbeats stopped without a shutdown. */
  readonly state: NodeState | 'silent';
  readonly readySince: Date | undefined;
  readonly lastHeartbeat: Date;
  /** The time since the node's last heartbeat. */
  readonly silentMs: number;
  readonly runsWith: RunsWith;
}

/** Returns every node that runs, or that became silent within the last hour. */
export async function listNodes(database: Queries): Promise<ListedNode[]> {
  const rows = await database.query<NodeRow>(
    `SELECT node, noted_at AS "lastHeartbeat",
        extract(epoch FROM clock_timestamp() - noted_at) * 1000 AS "silentMs",
        state, ready_since AS "readySince", runs_with AS "runsWith"
      FROM node_keys WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond'
      ORDER BY node`,
    [FORGOTTEN_AFTER_MS],
  );
  return rows.map(({ node, lastHeartbeat, state, readySince, runsWith, ...row }) => {
    const silentMs = Number(row.silentMs);
    return {
      node,
      lastHeartbeat,
      silentMs,
      state: silentMs > SILENT_AFTER_MS ? 'silent' : state,
      readySince: readySince ?? undefined,
      runsWith,
    };
  });
}

interface NodeRow {
  readonly node: string;
  readonly lastHeartbeat: Date;
  readonly silentMs: string;
  readonly state: NodeState;
  readonly readySince: Date | null;
  readonly runsWith: RunsWith;
}
