/** Gauges that are read at each scrape. */
import { Gauge, type Registry } from 'prom-client';
import type { StoreStates } from '../readiness.ts';

export interface WatchedState {
  /** Cached for one second. */
  readonly stores: () => Promise<StoreStates>;
  /** Of the PostgreSQL pool. */
  readonly connections: () => { used: number; idle: number; waiting: number };
  readonly isFeedLive: () => boolean;
  /** The time of the latest successful import; undefined if no import has succeeded yet. */
  readonly lastImport: () => Promise<Date | undefined>;
}

export function registerState(registry: Registry, state: WatchedState): void {
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
  // Register this gauge after the connections, because its probe of the stores uses connections.
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
      // Read the database, because a command, which is another process, runs imports.
      const succeededAt = await state.lastImport().catch(() => undefined);
      if (succeededAt) this.set(succeededAt.getTime() / 1_000);
      else this.remove();
    },
  });
}
