/** Measures a service and a bare Koa alternately, so that other load on the machine affects both. */
import type { StartedProgram } from './deployment.ts';
import { type Measurement, measure } from './load.ts';
import { processorTime, residentMemory } from './processor.ts';
import { table } from './table.ts';

/** Medians; requests and failures are sums. */
export interface Comparison extends Measurement {
  /** Microseconds of the service's processor time per request; NaN if unknown. */
  readonly cpu: number;
  readonly cpuOfKoa: number;
  /** The bare Koa's processor time per request divided by the service's, ascending. */
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
  const rounds: Comparison[] = [];
  for (let part = 0; part < PARTS; part += 1) {
    const { cpu: cpuOfKoa } = await withCpu(koa, () => loadBareKoa(koa));
    const ours = await withCpu(service, load);
    const resident = residentMemory(service.pid);
    const round = { ...ours, cpuOfKoa, ratios: [cpuOfKoa / ours.cpu], resident };
    if (part >= WARM_UP_ROUNDS) rounds.push(round);
  }
  return summarize(rounds);
}

/** Summarizes the rounds of one process, or the results of several processes. */
export function summarize(parts: readonly Comparison[]): Comparison {
  const of = (name: Exclude<keyof Comparison, 'ratios'>) => parts.map((part) => part[name]);
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b);
  return {
    cpu: middle(of('cpu')),
    cpuOfKoa: middle(of('cpuOfKoa')),
    ratios: parts.map(({ ratios }) => middle(ratios)).sort((a, b) => a - b),
    resident: Math.max(...of('resident')),
    requestsPerSecond: middle(of('requestsPerSecond')),
    p50: middle(of('p50')),
    p99: middle(of('p99')),
    p999: middle(of('p999')),
    longest: Math.max(...of('longest')),
    requests: sum(of('requests')),
    failures: sum(of('failures')),
  };
}

export function middle(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** Runs the load, and adds the processor time per request that the program used. */
export async function withCpu({ pid }: Pick<StartedProgram, 'pid'>, load: () => Promise<Measurement>) {
  const before = processorTime(pid);
  const measurement = await load();
  return { ...measurement, cpu: (processorTime(pid) - before) / measurement.requests };
}

/** Sends POSTs of a form, like those of clients, to the bare Koa. */
export const loadBareKoa = ({ url }: StartedProgram): Promise<Measurement> =>
  measure(url, { seconds: 1 }, () => ({
    next: () => ({
      method: 'POST',
      path: '/',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials&client_id=nobody&client_secret=none',
    }),
  }));

/** Returns a table of the rows, whose first column names the measurement. */
export function comparisonTable(title: string, rows: readonly (readonly [name: string, Comparison])[]): string {
  const head = [title, 'of Koa', 'from-to', 'CPU us', 'of Koa us', '1/s', 'p50 ms', 'p99 ms', 'MB', 'failed'];
  const cells = rows.map(([name, comparison]) => {
    const { ratios, cpu, cpuOfKoa, requestsPerSecond, p50, p99, resident, failures } = comparison;
    const [least = 0] = ratios;
    return [
      name,
      middle(ratios).toFixed(3),
      `${least.toFixed(3)}-${(ratios.at(-1) ?? 0).toFixed(3)}`,
      cpu.toFixed(0),
      cpuOfKoa.toFixed(0),
      Math.round(requestsPerSecond).toLocaleString('en'),
      p50.toFixed(1),
      p99.toFixed(1),
      resident.toFixed(0),
      String(failures),
    ];
  });
  return table(head, cells);
}
