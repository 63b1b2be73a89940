/** Measures a service and a bare Koa in turns, so that other load on the machine affects both. */
import type { StartedProgram } from './deployment.ts';
import { type Measurement, measure } from './load.ts';
import { processorTime, residentMemory } from './processor.ts';

/** Medians of the rounds; requests and failures are sums. */
export interface Comparison extends Measurement {
  /** Microseconds of the service's processor time per request; NaN if unknown. */
  readonly cpu: number;
  readonly cpuOfKoa: number;
  /** The bare Koa's processor time per request divided by the service's, per round, ascending. */
  readonly ratios: readonly number[];
  /** Maximum megabytes of the service in memory. */
  readonly resident: number;
}

const ROUNDS = 5;
/** These rounds are not measured: V8 recompiles code that runs ten thousand times. */
const WARM_UP_ROUNDS = 3;
/** How often `load` is called. */
export const PARTS = WARM_UP_ROUNDS + ROUNDS;

export async function besideKoa(
  koa: StartedProgram,
  service: Pick<StartedProgram, 'pid'>,
  load: () => Promise<Measurement>,
): Promise<Comparison> {
  const rounds: (Measurement & { cpu: number; cpuOfKoa: number; resident: number })[] = [];
  for (let part = 0; part < PARTS; part += 1) {
    const bare = await withCpu(koa, () => loadBareKoa(koa));
    const ours = await withCpu(service, load);
    const resident = residentMemory(service.pid);
    if (part >= WARM_UP_ROUNDS) rounds.push({ ...ours, cpuOfKoa: bare.cpu, resident });
  }
  const sorted = (of: (round: (typeof rounds)[number]) => number): number[] =>
    rounds.map(of).sort((a, b) => a - b);
  const median = (of: (round: (typeof rounds)[number]) => number): number =>
    sorted(of)[ROUNDS >> 1] ?? Number.NaN;
  const sum = (of: (round: (typeof rounds)[number]) => number): number =>
    rounds.map(of).reduce((a, b) => a + b);
  return {
    cpu: median(({ cpu }) => cpu),
    cpuOfKoa: median(({ cpuOfKoa }) => cpuOfKoa),
    ratios: sorted(({ cpu, cpuOfKoa }) => cpuOfKoa / cpu),
    resident: Math.max(...sorted(({ resident }) => resident)),
    requestsPerSecond: median(({ requestsPerSecond }) => requestsPerSecond),
    p50: median(({ p50 }) => p50),
    p99: median(({ p99 }) => p99),
    requests: sum(({ requests }) => requests),
    failures: sum(({ failures }) => failures),
  };
}

/** Runs the load, and adds the processor time per request that the program used. */
export async function withCpu(
  { pid }: Pick<StartedProgram, 'pid'>,
  load: () => Promise<Measurement>,
) {
  const before = processorTime(pid);
  const measurement = await load();
  return { ...measurement, cpu: (processorTime(pid) - before) / measurement.requests };
}

/** A POST of a form, like those that clients send. */
const loadBareKoa = ({ url }: StartedProgram): Promise<Measurement> =>
  measure(url, { seconds: 1 }, () => ({
    next: () => ({
      method: 'POST',
      path: '/',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials&client_id=nobody&client_secret=none',
    }),
  }));
