/** Metrics of requests and store operations. */
import { Counter, Histogram, type Registry } from 'prom-client';

/**
 * Called for every request of the public listener.
 * @param route the pattern, such as `/profile/oauth-clients/:id`. If it were the path, each path that a caller invents
 * would be a new series.
 */
export type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/** Bucket limits in seconds. The shortest requests are cached introspections; the longest end with a store timeout. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS'];

export function createRequestMetrics(registry: Registry): ObserveRequest {
  const registers = [registry];
  const answers = new Counter({
    name: 'gatehouse_http_requests_total',
    help:
      'Requests of the public listener by route pattern, method and status (499: the client ' +
      'disconnected before the answer).',
    labelNames: ['route', 'method', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'gatehouse_http_request_duration_seconds',
    help: 'Time from the request to its answer.',
    labelNames: ['route', 'method'],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  return (route, anyMethod, status, seconds) => {
    const method = METHODS.includes(anyMethod) ? anyMethod : 'other';
    answers.labels(route, method, String(status)).inc();
    duration.labels(route, method).observe(seconds);
  };
}

/** Called once for each operation (see `measuredStore`). */
export type ObserveStore = (operation: string) => (seconds: number, isAway: boolean) => void;

export function createStoreMetrics(registry: Registry): (store: 'database' | 'tokens') => ObserveStore {
  const labelNames = ['store', 'operation'];
  const registers = [registry];
  const duration = new Histogram({
    name: 'gatehouse_store_operation_duration_seconds',
    help: 'Time of one operation of a store, including the wait for a connection.',
    labelNames,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
    registers,
  });
  const errors = new Counter({
    name: 'gatehouse_store_errors_total',
    help: 'Operations that the store did not answer in time, or could not carry out.',
    labelNames,
    registers,
  });
  return (store) => (operation) => {
    const took = duration.labels(store, operation);
    const failed = errors.labels(store, operation);
    // Start at 0, because an alert sees no increase in a series that begins with its first error.
    failed.inc(0);
    return (seconds, isAway) => {
      took.observe(seconds);
      if (isAway) failed.inc();
    };
  };
}
