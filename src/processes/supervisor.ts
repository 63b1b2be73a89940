/** Several worker processes as one node: started, replaced, told to reload, asked how they are. */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { createReload } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import { addressOf, drain, listen } from '../host/listeners.ts';
import { createOperatorsHost } from '../host/operators-host.ts';
import { createReloadMetrics } from '../host/reload-metrics.ts';
import type { Service } from '../service.ts';
import { nodeMetrics, nodeReadiness } from './node-state.ts';
import { NoAnswer, tell } from './orders.ts';

/** What the program runs, in one process or in several. */
export type Node = Pick<
  Service,
  'operatorsUrl' | 'isSeeded' | 'reload' | 'shutdownDelayMs' | 'leave' | 'close'
>;

/** Milliseconds. A start may migrate, which takes its time. */
const START_LIMIT = 10 * 60_000;
const APPLY_LIMIT = 10_000;
const LEAVE_LIMIT = 7_500;
const CLOSE_LIMIT = 2_000;
/** Between the end of a worker and the next attempt; doubled each time until one stays. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 30_000;
/** A worker that lived so long had started well. */
const GOOD_LIFE = 60_000;
/** Attempts that fail in a row while nobody serves. */
const MOST_ATTEMPTS = 5;

/**
 * Starts the first worker alone, for it may migrate and seed, then the others.
 *
 * @param onGivenUp told why when no worker can be started any more. Nothing serves then.
 * @throws OrderFailed with the worker's explanation when one does not start.
 */
export async function startProcesses({
  settings,
  loadSettings,
  log,
  onGivenUp,
}: {
  readonly settings: Settings;
  readonly loadSettings: () => Settings;
  readonly log: Logger;
  readonly onGivenUp: (error: unknown) => void;
}): Promise<Node> {
  await using opened = new AsyncDisposableStack();
  let current = settings;
  const serving = new Set<Worker>();
  const stopping = new AbortController();
  let failures = 0;

  cluster.setupPrimary({ serialization: 'advanced' });

  async function startWorker(): Promise<{ worker: Worker; isSeeded: boolean }> {
    const worker = cluster.fork();
    worker.once('exit', () => serving.delete(worker));
    try {
      let given = current;
      const { isSeeded } = await tell(worker, 'start', given, START_LIMIT);
      // There may have been a reload meanwhile.
      while (given !== current) {
        given = current;
        await tell(worker, 'apply', given, APPLY_LIMIT);
      }
      serving.add(worker);
      return { worker, isSeeded };
    } catch (error) {
      worker.process.kill('SIGKILL');
      throw error;
    }
  }

  /** Lives as long as the node: one worker after another. */
  async function keepServing(first: Worker): Promise<void> {
    let worker: Worker | undefined = first;
    let pause = FIRST_PAUSE;
    while (!stopping.signal.aborted) {
      const startedAt = performance.now();
      if (worker) {
        if (!worker.isDead()) await once(worker, 'exit');
        if (stopping.signal.aborted) return;
        const { pid, exitCode, signalCode } = worker.process;
        log.error({ worker: pid, exitCode, signalCode }, 'a worker ended, another takes its place');
      }
      if (performance.now() - startedAt > GOOD_LIFE) pause = FIRST_PAUSE;
      await delay(pause, undefined, { signal: stopping.signal }).catch(() => {});
      pause = Math.min(pause * 2, LONGEST_PAUSE);
      if (stopping.signal.aborted) return;
      worker = await replace();
    }
  }

  async function replace(): Promise<Worker | undefined> {
    try {
      const { worker } = await startWorker();
      failures = 0;
      return worker;
    } catch (error) {
      if (stopping.signal.aborted) return undefined;
      failures += 1;
      log.error({ err: error }, 'a worker did not start');
      if (serving.size === 0 && failures >= MOST_ATTEMPTS) onGivenUp(error);
      return undefined;
    }
  }

  /** On all workers, or on none. One that ends meanwhile is followed by one with these settings. */
  async function apply(next: Settings): Promise<void> {
    const changed: Worker[] = [];
    try {
      for (const worker of serving) {
        changed.push(worker);
        await tell(worker, 'apply', next, APPLY_LIMIT).catch((error: unknown) => {
          if (!(error instanceof NoAnswer && worker.isDead())) throw error;
        });
      }
    } catch (error) {
      const before = changed.map((worker) => tell(worker, 'apply', current, APPLY_LIMIT));
      await Promise.allSettled(before);
      throw error;
    }
    current = next;
    log.level = next.log.level;
  }

  async function endWorkers(): Promise<void> {
    stopping.abort();
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    const ended = workers.map(async (worker) => {
      const exit = worker.isDead() ? undefined : once(worker, 'exit');
      worker.process.kill('SIGTERM');
      const late = setTimeout(() => worker.process.kill('SIGKILL'), CLOSE_LIMIT);
      await exit;
      clearTimeout(late);
    });
    await Promise.all(ended);
  }

  opened.defer(endWorkers);
  const first = await startWorker();
  const others = await Promise.all(
    Array.from({ length: settings.server.processes - 1 }, async () => (await startWorker()).worker),
  );
  for (const worker of [first.worker, ...others]) void keepServing(worker);

  const own = new Registry();
  const outcomes = createReloadMetrics(own);
  const readiness = nodeReadiness(serving);
  const reload = createReload({ settings, loadSettings, apply, log, outcomes });
  const { operatorsPort, operatorsHost } = settings.server;
  const operatorsApp = createOperatorsHost({
    ...{ log, readiness, reload, operatorsHost, metrics: () => nodeMetrics(serving, own) },
  });
  const operators = await listen(operatorsApp.callback(), operatorsPort, operatorsHost);
  opened.defer(() => drain(operators));

  const shutdownDelayMs = (): number => current.server.shutdownDelaySeconds * 1000;
  const closing = opened.move();
  return {
    operatorsUrl: addressOf(operators),
    isSeeded: first.isSeeded,
    reload,
    shutdownDelayMs,
    async leave() {
      stopping.abort();
      readiness.startDraining();
      const limit = LEAVE_LIMIT + shutdownDelayMs();
      const left = [...serving].map((worker) => tell(worker, 'leave', undefined, limit));
      await Promise.allSettled(left);
    },
    close: () => closing.disposeAsync(),
  };
}
