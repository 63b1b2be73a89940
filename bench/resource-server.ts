/** Introspection by an API: through the resource server module, for many callers at once. */
import { createIntrospector } from '../modules/node/src/resource-server.ts';
import type { TestClient } from '../test/support/oauth.ts';
import { type Measurement, measurementOf } from './load.ts';

const CALLERS = 100;
/** A generous timeout: the benchmark measures how long an answer takes, not whether it is in time. */
const TIMEOUT_MS = 10_000;

/**
 * Runs 100 callers, each of which sends its next request as soon as the last one is answered.
 *
 * @param options `nextToken` returns valid access tokens, more than there are callers, because
 *   equal tokens at the same time share a request
 */
export async function measureResourceServer(options: {
  readonly issuer: string;
  readonly resourceServer: TestClient;
  readonly nextToken: () => string;
  readonly seconds: number;
}): Promise<Measurement> {
  const { issuer, resourceServer, nextToken, seconds } = options;
  const { id: clientId, secret: clientSecret = '' } = resourceServer;
  const introspector = createIntrospector({ issuer, clientId, clientSecret, timeoutMs: TIMEOUT_MS });
  const durations: number[] = [];
  let failures = 0;
  const started = performance.now();
  const end = started + seconds * 1000;

  async function call(): Promise<void> {
    while (performance.now() < end) {
      const asked = performance.now();
      const headers = { authorization: `Bearer ${nextToken()}` };
      const { caller } = await introspector.identify({ headers });
      durations.push(performance.now() - asked);
      if (!caller) failures += 1;
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, call));
  const milliseconds = performance.now() - started;
  introspector.close();
  return measurementOf(durations, { milliseconds, failures });
}
