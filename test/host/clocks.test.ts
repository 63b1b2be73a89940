/** A node whose clock is wrong logs a warning, and is not ready if the difference is large. */
import { expect } from 'chai';
import { realNow } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { readinessOf, scrape } from '../support/metrics.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startsOn, type TestService } from '../support/service.ts';

const LEVELS = { info: 30, warn: 40, error: 50 };

const deployment = 'postgres+redis';

describeOn([postgresServer, redisServer], 'a clock that differs from those of the stores', () => {
  const start = startsOn(deployment);
  let service: TestService;
  /** Milliseconds by which this node's clock is wrong; unlike with `createTestClock`, the clock keeps running. */
  let wrongBy = 0;

  before(async () => {
    // Without a clock option the service reads Date.now; the stores have their own clocks.
    Date.now = () => realNow() + wrongBy;
    wrongBy = 8_000;
    service = await start();
  });
  after(() => {
    Date.now = realNow;
  });

  const logs = () =>
    service.logLines
      .map((line) => JSON.parse(line) as { level: number; msg: string; store: string })
      .filter(({ msg }) => msg.includes('clock'));

  const stores = ['database', 'tokens'];

  const readyz = async () => (await readinessOf(service)).body;

  it('a clock that is wrong by 8 seconds is logged at the start and in the metrics, but the node is ready', async () => {
    expect(logs().map(({ store, level }) => [store, level])).to.have.deep.members(
      stores.map((store) => [store, LEVELS.warn]),
    );
    expect(logs()[0]?.msg).to.match(/^the clock of PostgreSQL is [78] s behind this node’s: .*NTP/);
    const samples = await scrape(service);
    for (const store of stores) {
      const offset = samples.get(`gatehouse_clock_offset_seconds{store="${store}"}`);
      expect(offset, store).to.be.within(-8.5, -6);
    }
    expect(await readyz()).to.deep.equal({ status: 'ready', database: 'ok', tokens: 'ok' });
  });

  for (const [direction, seconds] of [
    ['ahead of', -40],
    ['behind', 40],
  ] as const) {
    it(`a node whose clock is wrong by 40 seconds is not ready (the store’s clock is ${direction} it)`, async () => {
      wrongBy = seconds * 1_000;
      await eventually(async () => {
        const answer = await readyz();
        expect(answer).to.include({
          status: 'not ready',
          database: 'clock differs',
          tokens: 'clock differs',
        });
        expect(answer.reason).to.match(new RegExp(`^the clock of PostgreSQL is \\d+ s ${direction}`));
      });
      expect(logs().at(-1)).to.include({ level: LEVELS.error });
      wrongBy = 0;
      await eventually(async () => expect(await readyz()).to.include({ status: 'ready' }));
      expect(logs().at(-1)).to.include({ level: LEVELS.info });
    });
  }
});
