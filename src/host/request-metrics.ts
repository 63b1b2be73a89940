/** How many requests there were, how they ended and how long they took: by route, never by path. */
import { Counter, type Registry } from 'prom-client';
import { TallyHistogram } from './tally-histogram.ts';

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

interface Series {
  readonly took: (seconds: number) => void;
  readonly byStatus: Map<number, number>;
}

export function createRequestMetrics(registry: Registry): ObserveRequest {
  const registers = [registry];
  // Looked up and not resolved anew: this runs with every introspection.
  const routes = new Map<string, Map<string, Series>>();

  new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests of the public listener by route pattern, method and status (499: the caller left before the answer).',
    labelNames: ['route', 'method', 'status'],
    registers,
    collect() {
      this.reset();
      for (const [route, methods] of routes) {
        for (const [method, { byStatus }] of methods) {
          for (const [status, count] of byStatus) this.inc({ route, method, status }, count);
        }
      }
    },
  });
  const duration = new TallyHistogram({
    name: 'gatehouse_http_request_duration_seconds',
    help: 'Time from the request to its answer.',
    labelNames: ['route', 'method'],
    buckets: BUCKETS,
    registers,
  });

  function seriesOf(route: string, method: string): Series {
    const series = { took: duration.tallyOf({ route, method }), byStatus: new Map() };
    const methods = routes.get(route) ?? new Map<string, Series>();
    routes.set(route, methods.set(method, series));
    return series;
  }

  return (route, anyMethod, status, seconds) => {
    const method = METHODS.includes(anyMethod) ? anyMethod : 'other';
    const { took, byStatus } = routes.get(route)?.get(method) ?? seriesOf(route, method);
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    took(seconds);
  };
}
