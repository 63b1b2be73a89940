/** Which keys the running nodes have, and since when each key is in use: by fingerprint, never a key. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Database, Queries } from './queries.ts';

export type KeyKind = 'cookie' | 'token';

/** The current key first, older ones still accepted. */
export interface Keys {
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

/** What the nodes saw of one key; the times of "current" are null for one that never signed. */
export interface KeySighting {
  readonly kind: KeyKind;
  readonly fingerprint: string;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly firstCurrentAt: Date | null;
  readonly lastCurrentAt: Date | null;
}

/** A node that runs now, with the fingerprints of its keys, the current one first. */
export interface NodeKeys extends Keys {
  readonly node: string;
}

/** Milliseconds between two notes of a node. */
const PAUSE = 60_000;
/** A node that said nothing for so long is not running, or cannot reach the database. */
const SILENCE = 3 * PAUSE;

/** Eight hexadecimal characters: enough to tell two keys apart, and nothing to find a key with. */
export const keyFingerprint = (key: string): string =>
  createHash('sha256').update(`gatehouse-key:${key}`).digest('hex').slice(0, 8);

/**
 * Notes the keys of this node at once, so that it fails where the database does, and again each
 * minute, so that the end of a key's use is known.
 *
 * @param node its name, the same at every start: `host:port`.
 * @param keysInUse asked at each note.
 */
export async function startKeySightings(parts: {
  database: Database;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  node: string;
  keysInUse: () => Keys;
}) {
  const { database, clock, log, node, keysInUse } = parts;
  const write = (): Promise<void> => {
    const { cookieKeys, tokenKeys } = keysInUse();
    const fingerprints = {
      cookieKeys: cookieKeys.map(keyFingerprint),
      tokenKeys: tokenKeys.map(keyFingerprint),
    };
    return database.transaction((tx) => noteKeys(tx, { node, ...fingerprints }, clock()));
  };
  const note = (): Promise<void> =>
    write().catch((err: unknown) => log.warn({ err }, 'the keys could not be noted'));
  const stopping = new AbortController();
  const { signal } = stopping;

  async function goOn(): Promise<void> {
    while (!signal.aborted) {
      await delay(PAUSE, undefined, { signal, ref: false }).catch(() => {});
      if (!signal.aborted) await note();
    }
  }

  await write();
  const done = goOn();
  return {
    /** Notes the keys now: they have changed. What fails is logged, and tried again in a minute. */
    note,
    async stop(): Promise<void> {
      stopping.abort();
      await done;
      // Left behind where the database is away: after a while it counts for nothing.
      await database.query('DELETE FROM node_keys WHERE node = $1', [node]).catch(() => {});
    },
  };
}

async function noteKeys(
  tx: Queries,
  { node, cookieKeys, tokenKeys }: NodeKeys,
  now: number,
): Promise<void> {
  const kinds: readonly [KeyKind, readonly string[]][] = [
    ['cookie', cookieKeys],
    ['token', tokenKeys],
  ];
  const seen = kinds.flatMap(([kind, fingerprints]) =>
    // A key that is listed twice is one key, and a statement may touch a row only once.
    [...new Set(fingerprints)].map((fingerprint) => ({
      kind,
      fingerprint,
      isCurrent: fingerprint === fingerprints[0],
    })),
  );
  await tx.query(
    `INSERT INTO key_sightings AS known (kind, fingerprint, first_seen_at, last_seen_at,
        first_current_at, last_current_at)
      SELECT kind, fingerprint, $4, $4, at, at
        FROM unnest($1::text[], $2::text[], $3::boolean[]) AS seen (kind, fingerprint, is_current)
        CROSS JOIN LATERAL (SELECT CASE WHEN is_current THEN $4::timestamptz END) AS moment (at)
        ORDER BY kind, fingerprint -- so that two nodes at the same moment do not wait for each other
      ON CONFLICT (kind, fingerprint) DO UPDATE SET
        last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at),
        first_current_at = least(known.first_current_at, excluded.first_current_at),
        last_current_at = greatest(known.last_current_at, excluded.last_current_at)`,
    [
      seen.map(({ kind }) => kind),
      seen.map(({ fingerprint }) => fingerprint),
      seen.map(({ isCurrent }) => isCurrent),
      new Date(now),
    ],
  );
  await tx.query(
    `INSERT INTO node_keys (node, seen_at, cookie_keys, token_keys) VALUES ($1, $2, $3, $4)
      ON CONFLICT (node) DO UPDATE SET seen_at = excluded.seen_at,
        cookie_keys = excluded.cookie_keys, token_keys = excluded.token_keys`,
    [node, new Date(now), cookieKeys, tokenKeys],
  );
  // A node whose clock is wrong neither removes the others nor is removed by them: noted_at is the
  // database's time.
  await tx.query(
    `DELETE FROM node_keys WHERE seen_at < $1
      AND noted_at < clock_timestamp() - $2 * interval '1 millisecond'`,
    [new Date(now - SILENCE), SILENCE],
  );
}

/** Every key that a node of this deployment ever had. */
export const keySightings = (database: Queries): Promise<KeySighting[]> =>
  database.query(
    `SELECT kind, fingerprint, first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt",
        first_current_at AS "firstCurrentAt", last_current_at AS "lastCurrentAt"
      FROM key_sightings ORDER BY kind, first_seen_at, fingerprint`,
  );

/** The nodes that said so within the last three minutes. */
export const runningNodes = (database: Queries, clock: Clock): Promise<NodeKeys[]> =>
  database.query(
    `SELECT node, cookie_keys AS "cookieKeys", token_keys AS "tokenKeys"
      FROM node_keys WHERE seen_at >= $1 ORDER BY node`,
    [new Date(clock() - SILENCE)],
  );

/** How far the clock of each node is ahead of the database's, in milliseconds; negative: behind. */
export async function nodeClocks(
  database: Queries,
): Promise<{ readonly node: string; readonly aheadMs: number }[]> {
  const rows = await database.query<{ node: string; ahead: string }>(
    `SELECT node, extract(epoch FROM seen_at - noted_at) * 1000 AS ahead FROM node_keys
      WHERE noted_at >= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY node`,
    [SILENCE],
  );
  return rows.map(({ node, ahead }) => ({ node, aheadMs: Number(ahead) }));
}
