/** All Prometheus metrics of this service. */
import { readFileSync } from 'node:fs';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { droppedLogLines } from '../process-log.ts';
import { createRequestMetrics, createStoreMetrics } from './durations.ts';
import { createOutcomeMetrics, createReloadMetrics } from './outcome.ts';
import { registerState, type WatchedState } from './state.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** Create this once for each service and use it across reloads, because counters must never decrease. */
export function createMetrics() {
  const registry = Registry.merge([processMetrics()]);
  registerBuild(registry);
  return {
    observeRequest: createRequestMetrics(registry),
    observeStore: createStoreMetrics(registry),
    outcomes: { ...createOutcomeMetrics(registry), ...createReloadMetrics(registry) },
    /** Adds the metrics that are read at each scrape. Call this only once. */
    watch: (state: WatchedState): void => registerState(registry, state),
    /** In the text format of Prometheus. */
    text: async (): Promise<{ contentType: string; text: string }> => ({
      contentType: registry.contentType,
      text: await registry.metrics(),
    }),
  };
}

let processRegistry: Registry | undefined;

/**
 * Metrics of CPU, memory, garbage collection and event loop. Created once for the process, even for several services,
 * because these collectors are never removed.
 */
function processMetrics(): Registry {
  if (!processRegistry) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
    new Counter({
      name: 'gatehouse_log_lines_dropped_total',
      help: 'Log lines that could not be written: the disk is full, or their reader has gone.',
      registers: [processRegistry],
      collect() {
        this.reset();
        this.inc(droppedLogLines());
      },
    });
  }
  return processRegistry;
}

function registerBuild(registry: Registry): void {
  const registers = [registry];
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  new Gauge({
    name: 'gatehouse_build_info',
    help: 'Always 1; its labels describe the running version.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);
  new Gauge({
    name: 'gatehouse_start_time_seconds',
    help: 'When the process started, in seconds since the epoch.',
    registers,
  }).set(Math.round(performance.timeOrigin / 1000));
}
