/** What Prometheus would see of a service. */
import { expect } from 'chai';
import type { Service } from '../../src/service/service.ts';

/** Every sample by its name and labels, as they are written: `name{label="value"}`. */
export type Samples = ReadonlyMap<string, number>;

/** One scrape of the operators' listener. */
export async function scrape({ operatorsUrl }: Pick<Service, 'operatorsUrl'>): Promise<Samples> {
  const answer = await fetch(`${operatorsUrl}/metrics`);
  expect(answer.status).to.equal(200);
  expect(answer.headers.get('content-type')).to.include('text/plain; version=0.0.4');
  return samplesOf(await answer.text());
}

/** What a load balancer is told of it: `status` is the HTTP one, the rest is the body. */
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

/** The samples of one metric that are not 0, by their labels. */
export function counted(samples: Samples, name: string): Record<string, number> {
  const own = [...samples].filter(
    ([key, value]) => value !== 0 && (key === name || key.startsWith(`${name}{`)),
  );
  return Object.fromEntries(own.map(([key, value]) => [key.slice(name.length), value]));
}
