/** Reads the metrics and the readiness of a service. */
import { expect } from 'chai';
import type { Service } from '../../src/service/service.ts';

/** All samples, keyed by name and labels as they are written: `name{label="value"}`. */
export type Samples = ReadonlyMap<string, number>;

export async function scrape({ operatorsUrl }: Pick<Service, 'operatorsUrl'>): Promise<Samples> {
  const answer = await fetch(`${operatorsUrl}/metrics`);
  expect(answer.status).to.equal(200);
  expect(answer.headers.get('content-type')).to.include('text/plain; version=0.0.4');
  return samplesOf(await answer.text());
}

/** Requests /readyz as a load balancer does. `status` is the HTTP status. */
export async function readinessOf({ operatorsUrl }: Pick<Service, 'operatorsUrl'>) {
  const answer = await fetch(`${operatorsUrl}/readyz`);
  return { status: answer.status, body: (await answer.json()) as Record<string, string> };
}

export function samplesOf(text: string): Samples {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

/** Returns the samples of one metric that are not 0, keyed by their labels. */
export function counted(samples: Samples, name: string): Record<string, number> {
  const own = [...samples].filter(([key, value]) => value !== 0 && (key === name || key.startsWith(`${name}{`)));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(name.length), value]));
}

const QUERIES = 'gatehouse_store_operation_duration_seconds_count{store="database",operation="query"}';

/** The fewest queries of five such requests, because background queries may run during some of them. */
export async function queriesOf(
  service: Pick<Service, 'operatorsUrl'>,
  request: () => Promise<unknown>,
): Promise<number> {
  const counted = async () => (await scrape(service)).get(QUERIES) ?? 0;
  let fewest = Number.POSITIVE_INFINITY;
  for (let times = 0; times < 5; times += 1) {
    const before = await counted();
    await request();
    fewest = Math.min(fewest, (await counted()) - before);
  }
  return fewest;
}

/** Expects that both requests make as many queries. */
export async function expectSameQueries(
  service: Pick<Service, 'operatorsUrl'>,
  one: () => Promise<unknown>,
  another: () => Promise<unknown>,
): Promise<void> {
  expect(await queriesOf(service, another), 'queries').to.equal(await queriesOf(service, one));
}
