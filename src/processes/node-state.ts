/** How a node of several processes is: what each of them says, put together. */
import type { Worker } from 'node:cluster';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { MetricsText } from '../host/metrics.ts';
import type { Readiness, StoreStates } from '../host/readiness.ts';
import { tell } from './orders.ts';

/** Milliseconds: a worker asks its stores for somewhat less. */
const PATIENCE = 2_500;

const AWAY = (reason: string): StoreStates => ({
  database: { isAway: true, reason },
  tokens: { isAway: true, reason },
});

/** Ready while somebody serves, and every process that does reaches its stores. */
export function nodeReadiness(serving: ReadonlySet<Worker>): Readiness {
  let isDraining = false;
  return {
    async stores() {
      if (serving.size === 0) return AWAY('no process of this node serves');
      const states = await Promise.all(
        [...serving].map((worker) =>
          tell(worker, 'stores', undefined, PATIENCE).catch((error: Error) => {
            // One that ended a moment ago answers nothing and takes no requests either.
            return worker.isDead() ? undefined : AWAY(error.message);
          }),
        ),
      );
      const known = states.filter((state) => state !== undefined);
      const worst = (store: keyof StoreStates) =>
        known.map((state) => state[store]).find(({ isAway }) => isAway) ??
        // They share a machine, and so a clock.
        known[0]?.[store] ?? { isAway: false };
      return { database: worst('database'), tokens: worst('tokens') };
    },
    get isDraining() {
      return isDraining;
    },
    startDraining() {
      isDraining = true;
    },
  };
}

/** Every metric of every process, added up as the metric says, with what only the supervisor knows. */
export async function nodeMetrics(
  serving: ReadonlySet<Worker>,
  own: Registry,
): Promise<MetricsText> {
  const answers = await Promise.all(
    [...serving].map((worker) =>
      tell(worker, 'metrics', undefined, PATIENCE).catch(() => undefined),
    ),
  );
  const counted = answers.filter((answer) => answer !== undefined);
  const registry = AggregatorRegistry.aggregate([...counted, await own.getMetricsAsJSON()]);
  return { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: await registry.metrics() };
}
