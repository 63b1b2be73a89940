/** The nodes of this deployment: each says every ten seconds that it runs, in which state, and with what. */
import type { Clock } from '../base/clock.ts';
import type { Queries } from './queries.ts';

/** Milliseconds between two heartbeats of a node. */
export const HEARTBEAT = 10_000;
/** Milliseconds without a heartbeat after which a node is silent: frozen, killed, or cut off. */
const SILENCE = 3 * HEARTBEAT;
/** The same for a node of an older version, which writes once a minute. */
const SILENCE_OF_OLDER = 180_000;
/** Milliseconds for which a silent node is still listed, so that `doctor` can name it. */
const FORGOTTEN = 3_600_000;

export type NodeState = 'starting' | 'ready' | 'not_ready' | 'leaving';

/** What nodes of one deployment should have in common, and what decides how much one can take. */
export interface RunsWith {
  readonly version: string;
  /** By the name in the settings file: a value, or the fingerprint of a longer one. No secrets. */
  readonly settings: Readonly<Record<string, string>>;
  /** The id that is kept in its Redis; `none` without Redis, absent if Redis did not say it. */
  readonly redis?: string;
  /** How many files the process may open; absent if the system does not say it. */
  readonly openFiles?: number;
  readonly maxConnections: number;
  /** It got `X-Forwarded-For` although `server.proxy_hops` is 0. */
  readonly ignoresForwardedFor: boolean;
}

export interface NodeDescription {
  readonly state: NodeState;
  readonly runsWith: RunsWith;
}

/** The fingerprints of a node's keys, the current one first. */
export interface NodeKeys {
  readonly node: string;
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

/**
 * Writes the one row of this node.
 *
 * @param description absent only in tests, where the node then stands for one of the version before.
 */
export async function writeNode(
  database: Queries,
  { node, cookieKeys, tokenKeys }: NodeKeys,
  description: NodeDescription | undefined,
  now: number,
): Promise<void> {
  const at = new Date(now);
  const { state, runsWith } = description ?? {};
  await database.query(
    `INSERT INTO node_keys AS known
        (node, seen_at, cookie_keys, token_keys, described_at, state, ready_since, runs_with)
      VALUES ($1, $2, $3, $4, $5, $6::text, CASE $6::text WHEN 'ready' THEN clock_timestamp() END, $7)
      ON CONFLICT (node) DO UPDATE SET seen_at = excluded.seen_at,
        cookie_keys = excluded.cookie_keys, token_keys = excluded.token_keys,
        described_at = excluded.described_at, state = excluded.state, runs_with = excluded.runs_with,
        ready_since = CASE WHEN excluded.state = 'ready' AND known.state = 'ready'
          THEN known.ready_since ELSE excluded.ready_since END`,
    [node, at, cookieKeys, tokenKeys, state ? at : null, state ?? null, runsWith ?? null],
  );
}

/** Removes the rows of nodes that have been silent for an hour. */
export async function removeForgottenNodes(database: Queries, now: number): Promise<void> {
  // A node whose clock is wrong neither removes the others nor is removed by them: noted_at is the
  // database's time.
  await database.query(
    `DELETE FROM node_keys WHERE seen_at < $1
      AND noted_at < clock_timestamp() - $2 * interval '1 millisecond'`,
    [new Date(now - FORGOTTEN), FORGOTTEN],
  );
}

export async function removeNode(database: Queries, node: string): Promise<void> {
  await database.query('DELETE FROM node_keys WHERE node = $1', [node]);
}

/** The nodes that said so within the last three minutes. */
export const runningNodes = (database: Queries, clock: Clock): Promise<NodeKeys[]> =>
  database.query(
    `SELECT node, cookie_keys AS "cookieKeys", token_keys AS "tokenKeys"
      FROM node_keys WHERE seen_at >= $1 ORDER BY node`,
    [new Date(clock() - SILENCE_OF_OLDER)],
  );

/** How far the clock of each node is ahead of the database's, in milliseconds; negative: behind. */
export async function nodeClocks(
  database: Queries,
): Promise<{ readonly node: string; readonly aheadMs: number }[]> {
  const rows = await database.query<{ node: string; ahead: string }>(
    `SELECT node, extract(epoch FROM seen_at - noted_at) * 1000 AS ahead FROM node_keys
      WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY node`,
    [SILENCE_OF_OLDER],
  );
  return rows.map(({ node, ahead }) => ({ node, aheadMs: Number(ahead) }));
}

/** A node as its row says. Times are those of the database. */
export interface ListedNode {
  readonly node: string;
  /** `silent`: it neither said that it ends nor that it runs. `unknown`: it is of an older version. */
  readonly state: NodeState | 'silent' | 'unknown';
  readonly readySince: Date | undefined;
  readonly lastHeartbeat: Date;
  /** Milliseconds since its last heartbeat. */
  readonly silentMs: number;
  /** Absent for a node of an older version. */
  readonly runsWith: RunsWith | undefined;
}

/** Every node that runs or left without a word within the last hour. */
export async function listNodes(database: Queries): Promise<ListedNode[]> {
  const rows = await database.query<NodeRow>(
    `SELECT node, noted_at AS "lastHeartbeat",
        extract(epoch FROM clock_timestamp() - noted_at) * 1000 AS "silentMs",
        CASE WHEN described_at = seen_at THEN state END AS state,
        CASE WHEN described_at = seen_at THEN ready_since END AS "readySince",
        CASE WHEN described_at = seen_at THEN runs_with END AS "runsWith"
      FROM node_keys WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond'
      ORDER BY node`,
    [FORGOTTEN],
  );
  return rows.map(({ node, lastHeartbeat, state, readySince, runsWith, ...row }) => {
    const silentMs = Number(row.silentMs);
    const isSilent = silentMs > (state === null ? SILENCE_OF_OLDER : SILENCE);
    return {
      node,
      lastHeartbeat,
      silentMs,
      state: isSilent ? 'silent' : (state ?? 'unknown'),
      readySince: readySince ?? undefined,
      runsWith: runsWith ?? undefined,
    };
  });
}

interface NodeRow {
  readonly node: string;
  readonly lastHeartbeat: Date;
  readonly silentMs: string;
  readonly state: NodeState | null;
  readonly readySince: Date | null;
  readonly runsWith: RunsWith | null;
}
