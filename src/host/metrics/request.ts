/** How many requests there were, how they ended and how long they took: by route, never by path. */
import { Counter, Histogram, type Registry } from 'prom-client';

/**
 * Told of every request of the public listener.
 *
 * @param route the pattern, such as `/profile/oauth-clients/:id`: a path would be a series for
 *   each address that anybody makes up.
 */
export type ObserveRequest = (
  route: string,
  method: string,
  status: number,
  seconds: number,
) => void;

/** From an introspection that is answered from memory to the time limit of a store. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS'];

export function createRequestMetrics(registry: Registry): ObserveRequest {
  const registers = [registry];
  const answers = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests of the public listener by route pattern, method and status (499: the caller left before the answer).',
    labelNames: ['route', 'method', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'gatehouse_http_request_duration_seconds',
    help: 'Time from the request to its answer.',
    labelNames: ['route', 'method'],
    buckets: BUCKETS,
    registers,
  });
  return (route, anyMethod, status, seconds) => {
    const method = METHODS.includes(anyMethod) ? anyMethod : 'other';
    answers.labels(route, method, String(status)).inc();
    duration.labels(route, method).observe(seconds);
  };
}
