/** Writes each activity to the service's log, from the one node that has the lease on the log. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { randomId } from '../../base/random-id.ts';
import { type AuditTrail, MAX_PAGE, type Place } from './audit-trail.ts';

const ROUND_PAUSE_MS = 1_000;
/** A third of the lease, so that one failed renewal does not lose it. */
const CLAIM_PAUSE_MS = 3_300;

/**
 * Writes the entries that are not out yet, every second until stopped. Stores the place only after
 * the lines are written: if this node dies, the next node may write some lines again, but skips none.
 */
export function startAuditOutput(parts: {
  readonly trail: Pick<AuditTrail, 'claim' | 'read' | 'advance' | 'release'>;
  readonly log: Logger;
  readonly pauseMs?: number | undefined;
}): { stop(): Promise<void> } {
  const { trail, pauseMs = ROUND_PAUSE_MS } = parts;
  // Also write the lines if `log.level` is higher: other systems rely on them.
  const log = parts.log.child({}, { level: 'info' });
  const holder = randomId('', 16);
  const stopping = new AbortController();
  const { signal } = stopping;
  let held: Place | undefined;
  let claimedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;

  const flush = () => new Promise<void>((done, fail) => log.flush((error) => (error ? fail(error) : done())));

  async function round(): Promise<void> {
    if (performance.now() - claimedAt >= CLAIM_PAUSE_MS) {
      claimedAt = performance.now();
      held = await trail.claim(holder);
    }
    while (held && !signal.aborted) {
      const entries = await trail.read(held, MAX_PAGE);
      const last = entries.at(-1);
      if (last === undefined) return;
      for (const { line } of entries) log.info(line, 'audit');
      await flush();
      held = await trail.advance(holder, last.line.cursor);
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await round();
        isFailing = false;
      } catch (err) {
        // The cause may be only here, such as an output without a reader: let another node try.
        if (held) await trail.release(holder).catch(() => {});
        held = undefined;
        if (!isFailing) parts.log.warn({ err }, 'audit entries could not be put on the log');
        isFailing = true;
      }
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  const done = run();
  return {
    /** Gives the lease up, so that another node continues at once. */
    async stop() {
      stopping.abort();
      await done;
      await trail.release(holder).catch(() => {});
    },
  };
}
