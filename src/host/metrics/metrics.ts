/** What a Prometheus is told of this service: every metric, in a registry of its own. */
import { readFileSync } from 'node:fs';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import {
  createRequestMetrics,
  createStoreMetrics,
  type ObserveRequest,
  type ObserveStore,
  type StoreName,
} from './durations.ts';
import {
  createOutcomeMetrics,
  createReloadMetrics,
  type Outcomes,
  type ReloadOutcomes,
} from './outcome.ts';
import { registerState, type WatchedState } from './state.ts';

/** A scrape, as it is answered. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

export interface Metrics {
  readonly observeRequest: ObserveRequest;
  readonly observeStore: (store: StoreName) => ObserveStore;
  readonly outcomes: Outcomes & ReloadOutcomes;
  /** Adds what is asked when somebody looks. To be called once. */
  watch(state: WatchedState): void;
  /** Everything, in the text format of Prometheus. */
  text(): Promise<MetricsText>;
}

/** Lives as long as the service does, whatever its settings: counters only go up. */
export function createMetrics(): Metrics {
  const registry = Registry.merge([metricsOfTheProcess()]);
  registerBuild(registry);
  return {
    observeRequest: createRequestMetrics(registry),
    observeStore: createStoreMetrics(registry),
    outcomes: { ...createOutcomeMetrics(registry), ...createReloadMetrics(registry) },
    watch: (state) => registerState(registry, state),
    text: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

let ofTheProcess: Registry | undefined;

/**
 * CPU, memory, garbage collection, event-loop lag. Measured once, however many services a process
 * runs: what measures them is never taken down again.
 */
function metricsOfTheProcess(): Registry {
  if (!ofTheProcess) {
    ofTheProcess = new Registry();
    collectDefaultMetrics({ register: ofTheProcess });
  }
  return ofTheProcess;
}

function registerBuild(registry: Registry): void {
  const registers = [registry];
  const { version } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  new Gauge({
    name: 'gatehouse_build_info',
    help: 'Always 1; its labels say what runs.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);
  new Gauge({
    name: 'gatehouse_start_time_seconds',
    help: 'When the process started, in seconds since the epoch.',
    registers,
  }).set(Math.round(performance.timeOrigin / 1000));
}
