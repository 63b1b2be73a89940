/** Opens the database and the token store, and starts what monitors them. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { lastImport } from '../changes/report.ts';
import type { Settings } from '../config/settings.ts';
import type { Metrics } from '../host/metrics/metrics.ts';
import { createClockWatch, createReadiness } from '../host/readiness.ts';
import { listenForChanges } from '../storage/change-feed.ts';
import { openDatabase } from '../storage/database.ts';
import { measuredDatabase, measuredStore } from '../storage/measured-store.ts';
import { requireSchema } from '../storage/migrate.ts';
import { openTokenStore } from '../storage/open-token-store.ts';

/** @param parts.opened closes the stores that were opened, even if this function fails afterwards */
export async function openStores(parts: {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly timeShift: () => number;
  readonly log: Logger;
  readonly timeoutFactor: number;
  readonly metrics: Metrics;
  readonly opened: AsyncDisposableStack;
}) {
  const { settings, clock, timeShift, log, timeoutFactor, metrics, opened } = parts;
  const storage = { ...settings.storage, timeoutFactor };
  const database = measuredDatabase(
    await openDatabase({ ...storage, sharing: 'own', timeShift }),
    metrics.observeStore('database'),
  );
  opened.defer(() => database.close());
  await requireSchema(database, storage, (session) =>
    log.warn({ session }, 'a migration waits for another session, and is tried again until that session ends'),
  );
  const changes = await listenForChanges(database, timeoutFactor);
  opened.defer(() => changes.close());

  const tokens = await openTokenStore({ ...storage, database, clock, timeShift, log });
  const { limits, time, identity } = tokens;
  const store = measuredStore(tokens.store, metrics.observeStore('tokens'));
  opened.defer(() => store.close());

  const readiness = createReadiness({
    clock,
    timeShift,
    onAnswer: createClockWatch(log),
    probes: {
      database: () => database.ping(),
      tokens: time && (async () => (await Promise.all([time(), store.ping()]))[0]),
    },
  });
  metrics.watch({
    stores: readiness.stores,
    connections: () => database.connections(),
    isFeedLive: () => changes.isLive,
    lastImport: () => lastImport(database),
  });
  // Compare the clocks now, so that a difference is logged at the start.
  await readiness.ask();
  return { database, changes, store, limits, redisIdentity: identity, readiness };
}
