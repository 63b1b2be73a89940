/** One of several processes of a node: it serves, and does what the supervisor tells it. */
import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { explained } from '../explained.ts';
import { type Service, startService } from '../service.ts';
import { obey } from './orders.ts';

/** Returns at once; the service starts with the first order, which brings the settings. */
export function runWorker(createLog: (level: Settings['log']['level']) => Logger): void {
  let service: Service | undefined;
  const started = (): Service => {
    if (service) return service;
    throw new Error('the service has not started');
  };

  let leaving: Promise<void> | undefined;
  const leave = (): Promise<void> => {
    leaving ??= started().leave();
    return leaving;
  };

  obey(
    {
      async start(settings) {
        const log = createLog(settings.log.level);
        service = await startService({
          ...{ settings, loadSettings: () => settings, isWorker: true, clock: systemClock, log },
        });
        return { isSeeded: service.isSeeded };
      },
      apply: (settings) => started().apply(settings),
      stores: () => started().readiness.stores(),
      metrics: () => started().metrics.registry.getMetricsAsJSON(),
      leave,
    },
    explained,
  );

  // Signals that a terminal or an init system sends to the whole group: the supervisor decides.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  // It comes from the supervisor after `leave`, or from somebody who wants this process replaced.
  process.on('SIGTERM', () => {
    if (!service) process.exit(0);
    leave()
      .then(() => service?.close())
      .then(
        () => process.exit(0),
        () => process.exit(1),
      );
  });
}
