/** Compares an API that caches its callers with one that introspects every call. */
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createIntrospector, type Introspector } from '../modules/node/src/resource-server.ts';
import { middle } from './beside-koa.ts';
import { connectPeople } from './connected-people.ts';
import { bestKind, type RunningDeployment, startDeployment } from './deployment.ts';
import { processorTime } from './processor.ts';
import { measureResourceServer } from './resource-server.ts';
import { table } from './table.ts';

const CALLERS = 10_000;
const ROUNDS = 5;
const AT_ONCE = 50;
const CALLS_PER_CLOCK_CHECK = 1_000;
/** On an idle machine, all callers are cached after some seconds. */
const PATIENCE_MS = 60_000;

/** @throws Error from the returned function, if it is still called after `PATIENCE_MS` */
function patience(): () => void {
  const began = performance.now();
  return () => {
    if (performance.now() - began < PATIENCE_MS) return;
    throw new Error(
      'the machine is too busy for this measurement: its stream of changes falls silent, so callers are asked again ' +
        `after ${PATIENCE_MS / 1_000} s; stop other programs, or give it more cores`,
    );
  };
}

interface Rate {
  readonly callsPerSecond: number;
  /** Microseconds of the API's processor time per call. */
  readonly cpu: number;
}

/** @param seconds the duration of each turn */
export async function measureLive(seconds: number): Promise<void> {
  const deployment = await startDeployment(bestKind());
  const { issuer, seed } = deployment;
  const { confidential, resourceServer } = seed.clients;
  const people = await connectPeople(deployment, confidential, CALLERS);
  const { tokens } = people;
  const { api, next, rememberAll, bytesPerCaller } = await rememberCallers({ issuer, seed, tokens });

  const remembered: Rate[] = [];
  const asking: Rate[] = [];
  await identify(api, next, 1);
  for (let round = 0; round < ROUNDS; round += 1) {
    await rememberAll();
    remembered.push(await identify(api, next, seconds));
    const cpuBefore = processorTime(process.pid);
    let turn = 0;
    const nextToken = () => tokens[turn++ % tokens.length] ?? '';
    const asked = await measureResourceServer({ issuer, resourceServer, nextToken, seconds });
    if (asked.failures > 0) throw new Error(`${asked.failures} callers were refused`);
    const cpu = (processorTime(process.pid) - cpuBefore) / asked.requests;
    asking.push({ callsPerSecond: asked.requestsPerSecond, cpu });
  }
  api.close();
  await people.close();
  await deployment.stop();

  const row = (name: string, rates: readonly Rate[]): string[] => [
    name,
    Math.round(middle(rates.map(({ callsPerSecond }) => callsPerSecond))).toLocaleString('en'),
    middle(rates.map(({ cpu }) => cpu)).toFixed(2),
    middle(rates.map(({ callsPerSecond }, at) => callsPerSecond / (asking[at]?.callsPerSecond ?? 0))).toFixed(1),
  ];
  console.log(`identify() of ${CALLERS.toLocaleString('en')} callers in turn, medians of ${ROUNDS} rounds.
A remembered caller takes ${bytesPerCaller.toFixed(0)} bytes, organizations included.
`);
  console.log(
    table(
      ['', 'calls/s', 'CPU us of the API', 'times as many'],
      [row('asking, 100 at once', asking), row('remembered', remembered)],
    ),
  );
}

/**
 * Creates an API in this process that caches the callers with these tokens.
 *
 * @returns `next`, which returns their requests in turn, and `rememberAll`, which must be called before each
 * measurement, because cached answers expire after minutes
 */
async function rememberCallers({
  issuer,
  seed,
  tokens,
}: Pick<RunningDeployment, 'issuer' | 'seed'> & { readonly tokens: readonly string[] }) {
  const { resourceServer } = seed.clients;
  const requests = tokens.map((token) => ({ headers: { authorization: `Bearer ${token}` } }));
  let turn = 0;
  const next = () => {
    const request = requests[turn++ % requests.length];
    if (!request) throw new Error('no callers');
    return request;
  };

  let ahead = 0;
  const api = createIntrospector({
    issuer,
    clientId: resourceServer.id,
    clientSecret: resourceServer.secret ?? '',
    live: true,
    timeoutMs: 10_000,
    clock: () => Date.now() + ahead,
  });
  const requireStream = patience();
  while ((await api.identify(next())).caller?.signal?.aborted !== false) {
    requireStream();
    await delay(50);
  }

  const before = heapUsed();
  await rememberAll();
  const bytesPerCaller = (heapUsed() - before) / tokens.length;
  return { api, next, rememberAll, bytesPerCaller };

  /** Calls the API until all callers are cached: on a busy machine the stream may fall silent. */
  async function rememberAll(): Promise<void> {
    const requireTime = patience();
    // Answers from the first seconds of a stream are not used again.
    ahead += 60_000;
    let asked = 0;
    const askSome = async (): Promise<void> => {
      for (let call = 0; call < tokens.length / AT_ONCE; call += 1) {
        const { caller, decidedBy } = await api.identify(next());
        if (!caller) throw new Error('a caller was refused');
        if (decidedBy !== 'memory') asked += 1;
      }
    };
    do {
      requireTime();
      asked = 0;
      await Promise.all(Array.from({ length: AT_ONCE }, askSome));
    } while (asked > 0);
  }
}

/** Calls the API, one call after another. */
async function identify(
  api: Introspector,
  next: () => Parameters<Introspector['identify']>[0],
  seconds: number,
): Promise<Rate> {
  const cpuBefore = processorTime(process.pid);
  const began = performance.now();
  let calls = 0;
  let asked = 0;
  do {
    for (let call = 0; call < CALLS_PER_CLOCK_CHECK; call += 1) {
      if ((await api.identify(next())).decidedBy !== 'memory') asked += 1;
    }
    calls += CALLS_PER_CLOCK_CHECK;
    // Let the stream be read in between, as in an API that has other work to do.
    await new Promise(setImmediate);
  } while (performance.now() - began < seconds * 1_000);
  if (asked > 0) console.error(`${asked} of ${calls} calls asked: the machine is too busy for the stream`);
  const took = (performance.now() - began) / 1_000;
  const cpu = (processorTime(process.pid) - cpuBefore) / calls;
  return { callsPerSecond: calls / took, cpu };
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
