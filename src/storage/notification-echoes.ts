/** Notifications that a node sends itself, to find out whether any arrive. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Queries } from './queries.ts';

/** Milliseconds between two of them. */
const INTERVAL = 2_000;

/**
 * They are sent on another connection than the one that listens. A pooler, or a listener that is
 * still connected to a database that was replaced, answers queries but passes on no notification.
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
    /** The number of the last one whose transaction is committed. */
    get sent() {
      return sent;
    },
    /** The number of the last one that arrived. */
    get heard() {
      return heard;
    },
    hear(payload: string | undefined): void {
      heard = Number(payload);
    },
    send,

    /** Sends one every two seconds. If one cannot be sent, nothing is known about those that can. */
    async repeat(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await delay(INTERVAL, undefined, { signal, ref: false }).catch(() => {});
        if (!signal.aborted) await send().catch(() => {});
      }
    },
  };
}
