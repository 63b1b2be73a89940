/** Deletes what has expired, in small batches, beside the service's work. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

const BATCH = 1_000;
/** Milliseconds between two rounds, and between two batches of one round. */
const PAUSE = 60_000;
const BREATH = 50;

/** Deletes at most `limit` expired things and answers how many it were. */
export type CleaningJob = (limit: number) => Promise<number>;

/** Told of each job's work. */
export interface CleaningOutcomes {
  cleaned(job: string, removed: number): void;
  cleaningFailed(job: string): void;
}

/** Begins at once and goes on until stopped. A failed round is logged, and the next one tries again. */
export function startCleaning(parts: {
  /** By what each of them removes. */
  jobs: Readonly<Record<string, CleaningJob>>;
  log: Logger;
  outcomes: CleaningOutcomes;
}): { round(): Promise<void>; stop(): Promise<void> } {
  const { jobs, log, outcomes } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;

  async function clean(name: string, job: CleaningJob): Promise<void> {
    while (!signal.aborted) {
      const removed = await job(BATCH);
      outcomes.cleaned(name, removed);
      if (removed < BATCH) return;
      await delay(BREATH, undefined, { signal });
    }
  }

  async function round(): Promise<void> {
    for (const [name, job] of Object.entries(jobs)) {
      await clean(name, job).catch((err: unknown) => {
        if (signal.aborted) return;
        outcomes.cleaningFailed(name);
        log.warn({ err, job: name }, 'expired records could not be removed');
      });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await round();
      await delay(PAUSE, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  const done = run();
  return {
    /** Does every job once more now, whatever the pause says. */
    round,
    async stop() {
      stopping.abort();
      await done;
    },
  };
}
