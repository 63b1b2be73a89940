/** All Prometheus metrics of this service. */
import { readFileSync } from 'node:fs';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { droppedLogLines } from '../process-log.ts';
import type { StoreStates } from '../readiness.ts';
import { createRequestMetrics, createStoreMetrics } from './durations.ts';
import { createOutcomeMetrics, createReloadMetrics } from './outcome.ts';

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
    /** Returns the metrics in the text format of Prometheus. */
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

interface WatchedState {
  /** Returns the states of the stores, cached for one second. */
  readonly stores: () => Promise<StoreStates>;
  /** Counts the connections of the PostgreSQL pool, and the queries that wait for one. */
  readonly connections: () => { used: number; idle: number; waiting: number };
  readonly isFeedLive: () => boolean;
  /** The time of the latest successful import; undefined if no import has succeeded yet. */
  readonly lastImport: () => Promise<Date | undefined>;
}

/** Gauges that are read at each scrape. */
function registerState(registry: Registry, state: WatchedState): void {
  const registers = [registry];
  new Gauge({
    name: 'gatehouse_database_connections',
    help: 'Connections of the pool to PostgreSQL.',
    labelNames: ['state'],
    registers,
    collect() {
      const { used, idle } = state.connections();
      this.set({ state: 'used' }, used);
      this.set({ state: 'idle' }, idle);
    },
  });
  new Gauge({
    name: 'gatehouse_database_waiting',
    help: 'Queries that wait for a connection of the pool.',
    registers,
    collect() {
      this.set(state.connections().waiting);
    },
  });
  // Register this gauge after that of the connections, because its probe of the stores uses connections.
  new Gauge({
    name: 'gatehouse_store_up',
    help: 'Whether the store accepts writes (1) or is unavailable (0), checked at each scrape.',
    labelNames: ['store'],
    registers,
    async collect() {
      const stores = await state.stores();
      for (const [store, { isAway }] of Object.entries(stores)) {
        this.set({ store }, isAway ? 0 : 1);
      }
    },
  });
  new Gauge({
    name: 'gatehouse_clock_offset_seconds',
    help: 'How far the clock of the store is ahead of this node’s.',
    labelNames: ['store'],
    registers,
    async collect() {
      this.reset();
      const stores = await state.stores();
      for (const [store, { clockAheadMs }] of Object.entries(stores)) {
        if (clockAheadMs !== undefined) this.set({ store }, clockAheadMs / 1_000);
      }
    },
  });
  new Gauge({
    name: 'gatehouse_change_feed_live',
    help:
      'Whether this process receives the announced changes, so that its caches are on (1), ' +
      'or every request queries the database (0).',
    registers,
    collect() {
      this.set(state.isFeedLive() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'gatehouse_import_last_success_timestamp_seconds',
    help:
      'Time of the last import that completed, in seconds since the epoch; absent before the ' +
      'first, and while the database is unavailable.',
    registers,
    async collect() {
      // Read the time from the database, because imports run in the process of an operator's command.
      const succeededAt = await state.lastImport().catch(() => undefined);
      if (succeededAt) this.set(succeededAt.getTime() / 1_000);
      else this.remove();
    },
  });
}
