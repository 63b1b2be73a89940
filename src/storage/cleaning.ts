/** Deletes what has expired, in small batches, beside the service's work. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

const BATCH = 1_000;
/** Milliseconds between two rounds, and between two batches of one round. */
const PAUSE = 60_000;
const BREATH = 50;

/** Deletes at most `limit` expired things and answers how many it were. */
export type CleaningJob = (limit: number) => Promise<number>;

/** Begins at once and goes on until stopped. A failed round is logged, and the next one tries again. */
export function startCleaning({ jobs, log }: { jobs: readonly CleaningJob[]; log: Logger }): {
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function clean(job: CleaningJob): Promise<void> {
    while (!signal.aborted && (await job(BATCH)) >= BATCH) {
      await delay(BREATH, undefined, { signal });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      for (const job of jobs) {
        await clean(job).catch((err: unknown) => {
          if (!signal.aborted) log.warn({ err }, 'expired records could not be removed');
        });
      }
      await delay(PAUSE, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  const done = run();
  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}
