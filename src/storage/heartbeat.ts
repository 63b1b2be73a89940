/** Writes the row of this node regularly, with the fingerprints of its keys. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { HEARTBEAT_MS, type NodeDescription, removeForgottenNodes, removeNode, writeNode } from './nodes.ts';
import type { Database } from './queries.ts';

export type KeyKind = 'cookie' | 'token';

/** The current key comes first. The older keys are still accepted. */
export interface Keys {
  readonly cookieKeys: readonly string[];
  readonly tokenKeys: readonly string[];
}

/** Every sixth heartbeat, once a minute, also removes the rows of nodes that no longer exist. */
const HEARTBEATS_PER_CLEANING = 6;

/** Eight hexadecimal characters: enough to tell keys apart, useless for guessing a key. */
export const keyFingerprint = (key: string): string =>
  createHash('sha256').update(`gatehouse-key:${key}`).digest('hex').slice(0, 8);

/**
 * Writes the row of this node now, and rejects if that fails. Then writes it every ten seconds.
 * @param node `host:port`, the same at every start
 * @param keysInUse called at each write
 * @param describe called at each write
 */
export async function startHeartbeat(parts: {
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

  async function beat(): Promise<void> {
    await writeNode(database, { node, ...fingerprints() }, await describe(), clock());
  }

  /** Run one write after another, so that the latest description of the node remains in its row. */
  let last = beat();
  function enqueue(work: () => Promise<void>): Promise<void> {
    last = last.then(work).catch((err: unknown) => log.warn({ err }, 'the row of the node could not be written'));
    return last;
  }

  const stopping = new AbortController();
  const { signal } = stopping;

  async function keepWriting(): Promise<void> {
    for (let beats = 1; !signal.aborted; beats += 1) {
      await delay(HEARTBEAT_MS, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      await enqueue(beat);
      if (beats % HEARTBEATS_PER_CLEANING === 0) await enqueue(() => removeForgottenNodes(database, clock()));
      parts.afterBeat?.();
    }
  }

  await last;
  const done = keepWriting();
  return {
    /** Writes the row after a change of state, keys or settings. If that fails, the next heartbeat tries again. */
    beat: () => enqueue(beat),
    async stop(): Promise<void> {
      stopping.abort();
      await done;
      await last;
      // If the database is unavailable, the row stays. A row without heartbeats is soon ignored.
      await removeNode(database, node).catch(() => {});
    },
  };
}
