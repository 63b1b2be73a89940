/** Expired records are removed in small batches, by all nodes together, while they answer requests. */
import { expect } from 'chai';
import { pino } from 'pino';
import { systemClock } from '../../src/base/clock.ts';
import { startCleaning } from '../../src/storage/cleaning.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { mixedRequests } from './mixed-requests.ts';
import { startLoad } from './steady-load.ts';

const EXPIRED = 30_000;

describeOn([postgresServer], 'cleaning, by two nodes in parallel', () => {
  const on = startSeeded({ on: 'postgres' });
  const databases: OpenDatabase[] = [];

  before(async () => {
    for (let node = 0; node < 2; node += 1) {
      databases.push(await openDatabase({ ...on.service.settings.storage, timeoutFactor: TIMEOUT_FACTOR }));
    }
  });
  after(async () => {
    await Promise.all(databases.map((database) => database.close()));
  });

  async function countExpired(): Promise<number> {
    const [row] = await on.service.database.query<{ count: string }>(
      'SELECT count(*) FROM token_records WHERE expires_at = 1',
    );
    return Number(row?.count);
  }

  it(`${EXPIRED} expired records are removed in batches of at most 1000, and no request fails`, async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    for (let part = 0; part < 10; part += 1) {
      await on.service.database.query(
        `INSERT INTO token_records (kind, key, data, expires_at)
          SELECT 'access', 'expired-' || $1 || '-' || n, '{}', 1 FROM generate_series(1, $2) n`,
        [part, EXPIRED / 10],
      );
    }
    const batches: number[] = [];
    const cleaners = databases.map((database) => {
      const { removeExpired } = createPostgresStore({ database, clock: systemClock });
      return startCleaning({
        jobs: {
          async tokens(limit) {
            expect(limit).to.be.at.most(1_000);
            return removeExpired(limit);
          },
        },
        log: pino({ level: 'silent' }),
        outcomes: { cleaned: (_, removed) => batches.push(removed), cleaningFailed: () => {} },
      });
    });
    const about = { accessToken, session: on.partner.browser };
    const load = startLoad(mixedRequests(on.issuer, on.seeded, about));
    await load.more(50);
    // Far more rounds than needed, so that a stalled cleaning fails instead of hanging.
    for (let round = 0; round < 2_000; round += 1) {
      if ((await countExpired()) < 1_000) break;
      await load.more(5);
    }
    await load.stop();
    await Promise.all(cleaners.map((cleaner) => cleaner.stop()));

    expect(load.failures).to.deep.equal([]);
    expect(Math.max(...batches)).to.equal(1_000);
    // The counts add up, so no record was removed by both nodes.
    const removed = batches.reduce((sum, batch) => sum + batch, 0);
    expect(removed).to.be.within(EXPIRED - 2_000, EXPIRED);
    expect(batches.length).to.be.at.least((EXPIRED - 2_000) / 1_000);
  });
});
