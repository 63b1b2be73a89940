/** Our histogram says what the library's would. */
import { expect } from 'chai';
import { AggregatorRegistry, Histogram, Registry } from 'prom-client';
import { TallyHistogram } from '../../src/host/tally-histogram.ts';

describe('tally histogram', () => {
  const buckets = [0.001, 0.01, 0.1];
  const about = { name: 'seconds', help: 'Time.', labelNames: ['route', 'method'], buckets };
  // At a bound, between two, above all of them, and nothing at all.
  const values = [0, 0.001, 0.0011, 0.01, 0.05, 0.1, 0.25, 7];

  /** As one process exposes it, and as the supervisor of two does. */
  async function exposed(fill: (registers: Registry[]) => void): Promise<string[]> {
    const registry = new Registry();
    fill([registry]);
    const sent = async () => JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
    const sum = AggregatorRegistry.aggregate([await sent(), await sent()]);
    return [await registry.metrics(), await sum.metrics()];
  }

  it('exposes what the library’s histogram would, alone and added up', async () => {
    const labels = [
      { route: '/login', method: 'GET' },
      { route: '/profile', method: 'POST' },
    ];
    const theirs = await exposed((registers) => {
      const histogram = new Histogram({ ...about, registers });
      for (const set of labels) for (const value of values) histogram.observe(set, value);
    });
    const ours = await exposed((registers) => {
      const histogram = new TallyHistogram({ ...about, registers });
      for (const set of labels) {
        const tally = histogram.tallyOf(set);
        for (const value of values) tally(value);
      }
    });
    expect(ours).to.deep.equal(theirs);
    expect(ours[0]).to.include('seconds_bucket{le="+Inf",route="/login",method="GET"} 8');
    expect(ours[1]).to.include('seconds_bucket{le="0.001",route="/login",method="GET"} 4');
  });
});
