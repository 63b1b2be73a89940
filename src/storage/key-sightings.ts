/** Records when each key was in use (by fingerprint, never the key), and the node's heartbeat. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { HEARTBEAT_MS, type NodeDescription, removeForgottenNodes, removeNode, writeNode } from './nodes.ts';
import type { Database, Queries } from './queries.ts';

export type KeyKind = 'cookie' | 'token';

/** The current key comes first; the older keys are still accepted. */
export interface Keys {
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

/** When nodes had a key. The `…CurrentAt` times are null if it was never the current key. */
export interface KeySighting {
  readonly kind: KeyKind;
  readonly fingerprint: string;
  readonly firstSeenAt: Date;
  readonly firstCurrentAt: Date | null;
  readonly lastCurrentAt: Date | null;
}

/** Heartbeats are 10 seconds apart, so the keys are written once a minute. */
const HEARTBEATS_PER_KEY_WRITE = 6;

/** Eight hexadecimal characters: enough to tell keys apart, useless for recovering one. */
export const keyFingerprint = (key: string): string =>
  createHash('sha256').update(`gatehouse-key:${key}`).digest('hex').slice(0, 8);

/**
 * Writes the keys and the row of this node now, and rejects if that fails. Then writes the row
 * every ten seconds, and the keys every minute, so that the end of a key's use is known.
 *
 * @param node the node's name, the same at every start: `host:port`.
 * @param keysInUse called at each write.
 * @param describe called at each write.
 */
export async function startKeySightings(parts: {
  database: Database;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  node: string;
  keysInUse: () => Keys;
  describe: () => Promise<NodeDescription>;
  afterBeat?: () => void;
}) {
  const { database, clock, log, node, keysInUse, describe } = parts;
  const fingerprints = (): Keys => {
    const { cookieKeys, tokenKeys } = keysInUse();
    return {
      cookieKeys: cookieKeys.map(keyFingerprint),
      tokenKeys: tokenKeys.map(keyFingerprint),
    };
  };

  async function write(): Promise<void> {
    const description = await describe();
    const [keys, now] = [fingerprints(), clock()];
    await database.transaction(async (tx) => {
      await writeKeys(tx, keys, now);
      await writeNode(tx, { node, ...keys }, description, now);
      await removeForgottenNodes(tx, now);
    });
  }

  async function beat(): Promise<void> {
    await writeNode(database, { node, ...fingerprints() }, await describe(), clock());
  }

  /** Runs one write after the other, so that the row holds the latest description. */
  let last = write();
  function enqueue(work: () => Promise<void>): Promise<void> {
    last = last.then(work).catch((err: unknown) => log.warn({ err }, 'the key fingerprints could not be recorded'));
    return last;
  }

  const stopping = new AbortController();
  const { signal } = stopping;

  async function keepWriting(): Promise<void> {
    for (let beats = 1; !signal.aborted; beats += 1) {
      await delay(HEARTBEAT_MS, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      await enqueue(beats % HEARTBEATS_PER_KEY_WRITE === 0 ? write : beat);
      parts.afterBeat?.();
    }
  }

  await last;
  const done = keepWriting();
  return {
    /** Call this when keys or settings have changed. A failure is logged; later writes retry it. */
    record: () => enqueue(write),
    /** Call this when the state of the node has changed. */
    beat: () => enqueue(beat),
    async stop(): Promise<void> {
      stopping.abort();
      await done;
      await last;
      // If the database is unavailable, the row stays; without heartbeats it is soon ignored.
      await removeNode(database, node).catch(() => {});
    },
  };
}

async function writeKeys(tx: Queries, { cookieKeys, tokenKeys }: Keys, now: number): Promise<void> {
  const kinds: readonly [KeyKind, readonly string[]][] = [
    ['cookie', cookieKeys],
    ['token', tokenKeys],
  ];
  const seen = kinds.flatMap(([kind, fingerprints]) =>
    // Remove duplicates: a key may be listed twice, but a statement may change a row only once.
    [...new Set(fingerprints)].map((fingerprint) => ({
      kind,
      fingerprint,
      isCurrent: fingerprint === fingerprints[0],
    })),
  );
  await tx.query(
    `INSERT INTO key_sightings AS known (kind, fingerprint, first_seen_at, first_current_at, last_current_at)
      SELECT kind, fingerprint, $4, at, at
        FROM unnest($1::text[], $2::text[], $3::boolean[]) AS seen (kind, fingerprint, is_current)
        CROSS JOIN LATERAL (SELECT CASE WHEN is_current THEN $4::timestamptz END) AS moment (at)
        ORDER BY kind, fingerprint -- so that two nodes at the same moment do not wait for each other
      ON CONFLICT (kind, fingerprint) DO UPDATE SET
        first_current_at = least(known.first_current_at, excluded.first_current_at),
        last_current_at = greatest(known.last_current_at, excluded.last_current_at)`,
    [
      seen.map(({ kind }) => kind),
      seen.map(({ fingerprint }) => fingerprint),
      seen.map(({ isCurrent }) => isCurrent),
      new Date(now),
    ],
  );
}

/** Returns every key that any node of this deployment has ever had. */
export const keySightings = (database: Queries): Promise<KeySighting[]> =>
  database.query(
    `SELECT kind, fingerprint, first_seen_at AS "firstSeenAt",
        first_current_at AS "firstCurrentAt", last_current_at AS "lastCurrentAt"
      FROM key_sightings ORDER BY kind, first_seen_at, fingerprint`,
  );
