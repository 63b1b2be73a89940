/** Measures how long one client waits for its answers while another one sends requests in an endless loop. */
import { once } from 'node:events';
import http from 'node:http';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { partnerTokens } from '../test/provider/partner-tokens.ts';
import { authorizationUrl } from '../test/support/oauth.ts';
import { bestKind, startDeployment } from './deployment.ts';
import type { LoadRequest } from './load.ts';
import { table } from './table.ts';
import { introspectionOf, refreshOf } from './token-requests.ts';

const CONNECTIONS = 500;
/** Time between two requests of the client that is measured. */
const PAUSE_MS = 10;
/** Time to wait until all connections are open. */
const BEGINNING_MS = 3_000;

interface Sender {
  readonly url: string;
  readonly agent: http.Agent;
}

function send({ url, agent }: Sender, { method, path, headers, body }: LoadRequest) {
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const request = http.request(new URL(path, url), { agent, method, headers: { ...headers } }, async (answer) => {
      resolve({ status: answer.statusCode, text: (await answer.toArray()).join('') });
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** @param seconds for each kind of request, with and without the other client */
export async function measureFair(seconds: number): Promise<void> {
  const deployment = await startDeployment(bestKind());
  const { issuer, seed } = deployment;
  const { confidential, otherConfidential, resourceServer } = seed.clients;
  const authorize = authorizationUrl(issuer, confidential);
  const partner = partnerTokens(issuer, seed);
  const own = await partner.tokens(confidential);
  const others = await partner.tokens(otherConfidential);
  // Use the cookie of a person who has approved the client, so that the answer is a code.
  const cookie = partner.browser.cookieHeader('/oauth/authorize');
  const sender = { url: issuer, agent: new http.Agent({ keepAlive: true }) };
  let { refreshToken } = own;
  const kinds: Record<string, () => LoadRequest> = {
    introspection: () => introspectionOf(resourceServer, own.accessToken),
    refresh: () => refreshOf(confidential, refreshToken),
    consent: () => ({ method: 'GET', path: authorize.pathname + authorize.search, headers: { cookie } }),
  };

  async function durationsOf(next: () => LoadRequest): Promise<number[]> {
    const durations: number[] = [];
    const end = performance.now() + seconds * 1_000;
    while (performance.now() < end) {
      const begin = performance.now();
      const { status, text } = await send(sender, next());
      durations.push(performance.now() - begin);
      if (status !== 200 && status !== 303) throw new Error(`${status}: ${text}`);
      if (text.startsWith('{')) refreshToken = JSON.parse(text).refresh_token ?? refreshToken;
      await delay(PAUSE_MS);
    }
    return durations.sort((one, other) => one - other);
  }
  const measureAll = async (): Promise<number[][]> => {
    const all: number[][] = [];
    for (const next of Object.values(kinds)) all.push(await durationsOf(next));
    return all;
  };

  // Warm up, because the first answers are slower.
  await measureAll();
  const quiet = await measureAll();
  const request = refreshOf(otherConfidential, others.refreshToken);
  const load = new Worker(import.meta.filename, { workerData: { url: issuer, request } });
  await once(load, 'online');
  await delay(BEGINNING_MS);
  const loaded = await measureAll();
  await load.terminate();
  await deployment.stop();

  const rows = Object.keys(kinds).map((kind, at) => {
    const [before, during] = [quiet[at] ?? [], loaded[at] ?? []];
    const cells = [0.5, 0.99].map((share) => {
      const [one, other] = [before, during].map((all) => all[Math.floor(all.length * share)] ?? Number.NaN);
      return `${one?.toFixed(1)} → ${other?.toFixed(1)} (${((other ?? 0) / (one ?? 0)).toFixed(1)})`;
    });
    return [kind, ...cells];
  });
  console.log(`Milliseconds until an answer, alone → while another client refreshes in an endless loop over ${CONNECTIONS}
connections (and their ratio).

${table(['request', 'p50', 'p99'], rows)}`);
}

/** Never ends: the thread is terminated. */
async function loop(sender: Sender, request: LoadRequest): Promise<never> {
  for (;;) await send(sender, request).catch(() => delay(PAUSE_MS));
}

if (!isMainThread && workerData?.request) {
  // On Linux this lowers only this thread, which must not take the processor from the measuring thread.
  os.setPriority(os.constants.priority.PRIORITY_LOW);
  const agent = new http.Agent({ keepAlive: true });
  for (let count = 0; count < CONNECTIONS; count += 1) void loop({ url: workerData.url, agent }, workerData.request);
}
