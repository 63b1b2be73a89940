/** Measures a service on stores with millions of authorizations: memory, start, latency, upkeep. */

import { setTimeout as delay } from 'node:timers/promises';
import { createRedis } from '../src/storage/redis/redis.ts';
import { scrape } from '../test/support/metrics.ts';
import { type Deployment, type DeploymentKind, prepareDeployment, type StartedService } from './deployment.ts';
import { type FilledStores, openStores } from './filled-stores.ts';
import { observeMachine } from './machine.ts';
import { type Call, measureOpenLoop } from './open-loop.ts';
import { onIdleCore, residentMemory, takePrecedence } from './processor.ts';
import { table } from './table.ts';
import { closedLoop, createTokenCalls } from './token-calls.ts';
import { measureBloat, measureRemoval } from './upkeep.ts';

interface MillionScale {
  readonly kind: DeploymentKind;
  readonly authorizations: number;
  /** The duration of each run of the open loop. */
  readonly seconds: number;
  /** Number of refreshes after which the size of the tables is measured again. */
  readonly refreshes: number;
}

/** From a million on as many users as a node caches by default. */
const peopleFor = (authorizations: number): number => Math.min(100_000, Math.ceil(authorizations / 10));
/** Shares of the rate of the closed loop at which the open loop runs. */
const SHARES = [0.5, 0.8];
const CLOSED_SECONDS = 20;
const WARM_UP_SECONDS = 10;
const TIMEOUT_FACTOR = 60;

export async function measureMillion(scale: MillionScale): Promise<void> {
  const { kind, authorizations, seconds, refreshes } = scale;
  const describe = observeMachine();
  const people = peopleFor(authorizations);
  const deployment = await prepareDeployment(kind);
  const redis = await redisOf(deployment);
  const open = () => openStores(deployment, deployment.seed.clients.confidential, { authorizations, people });

  let stores = await open();
  const began = performance.now();
  await redis?.setAppendOnly('no');
  await onIdleCore(() => stores.fill());
  const fillSeconds = (performance.now() - began) / 1_000;
  console.log(
    `${text(authorizations)} authorizations of ${text(people)} people, written in ` +
      `${fillSeconds.toFixed(0)} s, ${text(authorizations / fillSeconds)} a second`,
  );
  await redis?.printMemory('filled', authorizations);
  await redis?.setAppendOnly('yes');
  // Close them before the service starts: an embedded database belongs to one process at a time.
  await stores.close();

  let service = await deployment.start();
  const first = service.secondsUntilReady;
  await service.stop();
  service = await deployment.start();
  const again = service.secondsUntilReady;
  console.log(`Ready after ${first.toFixed(1)} s, restarted after ${again.toFixed(1)} s\n`);

  stores = await open();
  await measureLoad({ deployment, service, stores, authorizations, seconds });
  await redis?.printMemory('after the load', authorizations);
  if (!redis) await measureRemoval(deployment, service, stores, authorizations);
  await stores.close();
  await service.stop();
  if (!redis) {
    stores = await open();
    await measureBloat(stores, { authorizations, refreshes });
    await stores.close();
  }
  redis?.close();
  console.log(describe());
}

/** Finds the rate of each kind of request by the closed loop, and then runs the open loop. */
async function measureLoad(given: {
  readonly deployment: Deployment;
  readonly service: StartedService;
  readonly stores: FilledStores;
  readonly authorizations: number;
  readonly seconds: number;
}): Promise<void> {
  const { deployment, service, stores, authorizations, seconds } = given;
  const { issuer } = deployment;
  const calls = createTokenCalls(deployment, stores, authorizations);
  // The users have machines of their own: the load must not wait for the stores, which share its core.
  takePrecedence();
  console.log(`The load uses ${text(calls.count)} of the authorizations.`);
  const warmUp = { seconds: Math.min(WARM_UP_SECONDS, seconds) };
  const closed = { seconds: Math.min(CLOSED_SECONDS, seconds) };
  const rows: string[][] = [];

  /** @param prepare is called before each run with the number of requests that it will send */
  async function run(
    name: string,
    next: () => Call,
    rate: number,
    prepare: (count: number) => Promise<void> = async () => {},
  ): Promise<void> {
    for (const share of SHARES) {
      const perSecond = rate * share;
      await prepare(Math.ceil(perSecond * seconds));
      // Each scrape begins the measurement of the event-loop delay again.
      await scrape(deployment);
      const residentBefore = residentMemory(service.pid);
      const result = await measureOpenLoop(issuer, { perSecond, seconds }, next);
      const residentAfter = residentMemory(service.pid);
      const metrics = await scrape(deployment);
      const loopDelay = (name: string): string =>
        (((metrics.get(name) ?? Number.NaN) - INTERVAL_SECONDS) * 1_000).toFixed(1);
      rows.push([
        `${name}, ${share * 100} %`,
        text(result.answersPerSecond),
        ...[result.p50, result.p99, result.p999, result.longest].map((ms) => ms.toFixed(1)),
        `${result.failures}${result.unanswered > 0 ? ` (${result.unanswered} unanswered)` : ''}`,
        loopDelay('nodejs_eventloop_lag_p99_seconds'),
        loopDelay('nodejs_eventloop_lag_max_seconds'),
        residentBefore.toFixed(0),
        residentAfter.toFixed(0),
        ...[result.ownDelay99, result.longestOwnDelay].map((ms) => ms.toFixed(1)),
      ]);
    }
  }

  /** Adds only the last loop to the table; those before warm the service up. */
  async function rateOf(
    name: string,
    next: () => Call,
    limits: readonly Parameters<typeof closedLoop>[1][],
  ): Promise<number> {
    let rate = 0;
    let row: string[] = [];
    for (const limit of limits) {
      const { requestsPerSecond, p50, p99, failures } = await closedLoop(issuer, limit, next);
      rate = requestsPerSecond;
      const times = [p50, p99].map((ms) => ms.toFixed(1));
      row = [`${name}, closed loop`, text(rate), ...times, '', '', String(failures)];
    }
    rows.push(row);
    return rate;
  }

  await run('introspection', calls.introspect, await rateOf('introspection', calls.introspect, [warmUp, closed]));
  const refreshRate = await rateOf('refresh', calls.refresh, [warmUp, closed]);
  await run('refresh', calls.refresh, refreshRate);
  // Each exchange needs a code, so the loop has a number; an exchange takes about as long as a refresh.
  const limits = [warmUp, closed].map(({ seconds: each }) => {
    return { requests: Math.ceil(refreshRate * each) };
  });
  await calls.makeCodes(limits.reduce((sum, { requests }) => sum + requests, 0));
  await run('exchange', calls.exchange, await rateOf('exchange', calls.exchange, limits), calls.makeCodes);
  console.log(`\n${table(HEAD, rows)}\n${ABOUT_LOAD}`);
}

/** The metrics of the event-loop delay include the time between two samples. */
const INTERVAL_SECONDS = 0.01;
const HEAD = [
  '',
  'answers/s',
  'p50 ms',
  'p99 ms',
  'p99.9 ms',
  'longest',
  'failed',
  'loop p99 ms',
  'loop max',
  'MB before',
  'MB after',
  'load p99 ms',
  'load max',
];
const ABOUT_LOAD = `Percentages are of the rate of the closed loop. Times are counted from the planned moment. "loop" is the
event-loop delay of the service; "load" is that of the load, which the times include. "MB" is the
resident memory of the service.
`;

/** Undefined if the deployment has no Redis. */
async function redisOf({ storage: { redisUrl } }: Deployment) {
  if (redisUrl === undefined) return undefined;
  const redis = createRedis(redisUrl, { timeoutFactor: TIMEOUT_FACTOR });
  await redis.connect();
  const memory = async () => {
    const info = await redis.info('memory');
    return { used: field(info, 'used_memory'), resident: field(info, 'used_memory_rss') };
  };
  const empty = await memory();

  return {
    async printMemory(when: string, authorizations: number): Promise<void> {
      const { used, resident } = await memory();
      const own = (used - empty.used) / 1e6;
      const perMillion = (own / authorizations) * 1e6;
      const row = [when, text(own), text(perMillion), text(resident / 1e6)];
      console.log(table(['Redis', 'MB', 'MB per million', 'resident MB'], [row]));
    },
    /** While it is off, filling is faster. To switch it on, Redis writes its file, which this waits for. */
    async setAppendOnly(value: 'yes' | 'no'): Promise<void> {
      await redis.config('SET', 'appendonly', value);
      let isWriting = value === 'yes';
      while (isWriting) {
        await delay(100);
        const info = await redis.info('persistence');
        isWriting = field(info, 'aof_rewrite_in_progress') + field(info, 'aof_rewrite_scheduled') > 0;
      }
    },
    close: () => redis.disconnect(),
  };
}

/** Returns a number of the answer to INFO. */
const field = (info: string, name: string): number =>
  Number(
    info
      .split('\r\n')
      .find((line) => line.startsWith(`${name}:`))
      ?.slice(name.length + 1),
  );

const text = (value: number): string => Math.round(value).toLocaleString('en');
