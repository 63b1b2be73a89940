/** The nodes of this deployment. Each node writes its state and its settings every ten seconds. */
import type { Clock } from '../base/clock.ts';
import type { Queries } from './queries.ts';

export const HEARTBEAT_MS = 10_000;
/** After this time without a heartbeat, a node is silent: it was killed, hangs, or has no connection. */
const SILENT_AFTER_MS = 3 * HEARTBEAT_MS;
/** The keys and the clock of a silent node are still compared for this time, because the node may continue. */
const FROZEN_FOR_MS = 180_000;
/** For this long, a silent node is still listed, so that `doctor` can name it. */
const FORGOTTEN_AFTER_MS = 3_600_000;

export type NodeState = 'starting' | 'ready' | 'not_ready' | 'leaving';

/** Values that should be the same on all nodes of a deployment, and values that limit a node's load. */
export interface RunsWith {
  readonly version: string;
  /** Settings, by name. Long values are replaced by fingerprints, and secrets are absent. */
  readonly settings: Readonly<Record<string, string>>;
  /** The id that the node's Redis stores. It is `none` without Redis, and absent if Redis did not return an id. */
  readonly redis?: string;
  /** The maximum number of the node's connections to the database, without the one for notifications. */
  readonly databaseConnections: number;
  readonly reload: ReloadAnswer;
}

/** The result of a node's latest reload. */
export interface ReloadAnswer {
  /** The number of the latest reload request that the node has processed; 0 before the first request. */
  readonly request: number;
  /** Absent before the first reload. */
  readonly at?: string;
  /** Present if the reload was refused. The lines contain no values of the file. */
  readonly problems?: readonly string[];
}

export interface NodeDescription {
  readonly state: NodeState;
  readonly runsWith: RunsWith;
}

/** The fingerprints of a node's keys; the current key comes first. */
export interface NodeKeys {
  readonly node: string;
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

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

export async function removeForgottenNodes(database: Queries, now: number): Promise<void> {
  // Compare both seen_at and noted_at. noted_at comes from the database's clock, so a node with a wrong clock neither
  // deletes the rows of other nodes nor loses its own row.
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

/** `aheadMs`: by how much the clock of a node is ahead of the database's; negative if it is behind. */
export const nodeClocks = (database: Queries): Promise<{ readonly node: string; readonly aheadMs: number }[]> =>
  database.query(
    `SELECT node, (extract(epoch FROM seen_at - noted_at) * 1000)::float8 AS "aheadMs" FROM node_keys
      WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY node`,
    [FROZEN_FOR_MS],
  );

/** A node in the list. Its times are by the database's clock. */
export interface ListedNode {
  readonly node: string;
  /** `silent` means that heartbeats stopped without a shutdown. */
  readonly state: NodeState | 'silent';
  readonly readySince: Date | null;
  readonly lastHeartbeat: Date;
  /** The time since the latest heartbeat. */
  readonly silentMs: number;
  readonly runsWith: RunsWith;
}

/** Returns every node that runs, or that became silent within the last hour. */
export const listNodes = (database: Queries): Promise<ListedNode[]> =>
  database.query(
    `SELECT node, "lastHeartbeat", "silentMs", "readySince", "runsWith",
        CASE WHEN "silentMs" > $2 THEN 'silent' ELSE state END AS state
      FROM (SELECT node, state, noted_at AS "lastHeartbeat", ready_since AS "readySince", runs_with AS "runsWith",
          (extract(epoch FROM clock_timestamp() - noted_at) * 1000)::float8 AS "silentMs"
        FROM node_keys WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond') AS known
      ORDER BY node`,
    [FORGOTTEN_AFTER_MS, SILENT_AFTER_MS],
  );
