/** How long the stores take for each operation, and how often they did not answer. */
import { Counter, Histogram, type Registry } from 'prom-client';

export type StoreName = 'database' | 'tokens';

/** Told of each operation once it ended; `isAway`: the store did not answer, or could not keep it. */
export type ObserveOperation = (seconds: number, isAway: boolean) => void;

/** Of one store: the observer of one of its operations, resolved once. */
export type ObserveStore = (operation: string) => ObserveOperation;

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2];

export function createStoreMetrics(registry: Registry): (store: StoreName) => ObserveStore {
  const labelNames = ['store', 'operation'];
  const registers = [registry];
  const duration = new Histogram({
    name: 'gatehouse_store_operation_duration_seconds',
    help: 'Time of one operation of a store, waiting for a connection included.',
    labelNames,
    buckets: BUCKETS,
    registers,
  });
  const errors = new Counter({
    name: 'gatehouse_store_errors_total',
    help: 'Operations that the store did not answer in time, or could not carry out now.',
    labelNames,
    registers,
  });
  return (store) => (operation) => {
    const took = duration.labels(store, operation);
    const failed = errors.labels(store, operation);
    // A series that appears with its first error has no increase for an alert to see.
    failed.inc(0);
    return (seconds, isAway) => {
      took.observe(seconds);
      if (isAway) failed.inc();
    };
  };
}
