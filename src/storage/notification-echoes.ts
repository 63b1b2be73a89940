/** Notifications that a node sends to itself to check that notifications arrive. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Queries } from './queries.ts';

const INTERVAL_MS = 2_000;

/**
 * Sends notifications on another connection than the listening one, to test whether they arrive. A pooler, or a
 * connection to a replaced database, may answer queries without delivering notifications.
 */
export function createEchoes(database: Queries) {
  const channel = `gatehouse_echo_${randomBytes(8).toString('hex')}`;
  let sent = 0;
  let heard = 0;

  async function send(): Promise<void> {
    const next = sent + 1;
    await database.query('SELECT pg_notify($1, $2)', [channel, String(next)]);
    sent = next;
  }

  return {
    channel,
    /** The number of the latest echo (a notification to this node itself) that was committed. */
    get sent() {
      return sent;
    },
    get heard() {
      return heard;
    },
    hear(payload: string | undefined): void {
      heard = Number(payload);
    },
    send,

    /** Sends an echo every two seconds. Ignores a failure, which proves nothing about notifications. */
    async repeat(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await delay(INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {});
        if (!signal.aborted) await send().catch(() => {});
      }
    },
  };
}
