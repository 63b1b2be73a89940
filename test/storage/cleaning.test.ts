/** Cleaning reports its results, because an operator must see a job that fails every round. */
import { expect } from 'chai';
import { pino } from 'pino';
import { startCleaning } from '../../src/storage/cleaning.ts';
import { eventually } from '../support/eventually.ts';
import { startsOn } from '../support/service.ts';

describe('a cleaning run executes every job, even if one job fails or has a backlog', () => {
  it('cleaning reports what each job removed, and continues after a failed job, whose name it logs', async () => {
    const reported: string[] = [];
    const lines: string[] = [];
    const batches = [1_000, 7];
    const cleaning = startCleaning({
      log: pino({}, { write: (line) => void lines.push(line) }),
      outcomes: {
        cleaned: (job, removed) => void reported.push(`${job} ${removed}`),
        cleaningFailed: (job) => void reported.push(`${job} failed`),
      },
      jobs: {
        broken: () => Promise.reject(new Error('no table')),
        tokens: async () => batches.shift() ?? 0,
        grants: async () => 0,
      },
    });
    await eventually(() => expect(reported.at(-1)).to.equal('tokens 7'));
    await cleaning.stop();
    expect(reported).to.deep.equal(['broken failed', 'tokens 1000', 'grants 0', 'tokens 7']);
    expect(lines).to.have.length(1);
    expect(JSON.parse(lines[0] ?? '')).to.include({ level: 40, job: 'broken' });
  });

  it('a job with a backlog delays no other job: each runs one batch in turn', async () => {
    const calls: string[] = [];
    let backlog = 5_500;
    const cleaning = startCleaning({
      jobs: {
        large: async (limit) => {
          calls.push('large');
          const removed = Math.min(limit, backlog);
          backlog -= removed;
          return removed;
        },
        failing: async () => {
          calls.push('failing');
          throw new Error('failed');
        },
        small: async () => {
          calls.push('small');
          return 1;
        },
      },
      log: pino({ level: 'silent' }),
      outcomes: { cleaned: () => {}, cleaningFailed: () => {} },
    });
    await eventually(() => expect(backlog).to.equal(0));
    await cleaning.stop();
    expect(calls).to.deep.equal(['large', 'failing', 'small', ...Array(5).fill('large')]);
  });
});

describe('cleaning the embedded database removes old row versions without autovacuum', () => {
  const start = startsOn('embedded');

  it('old versions of refreshed authorizations are removed, although the embedded database has no autovacuum', async () => {
    const { database, store, clean } = await start();
    const facts = { accountId: 'acc_1', clientId: 'gate_ci_1', generation: 1, secret: 's', redirectUriHash: 'r' };
    const ids = Array.from({ length: 30 }, (_, number) => `an-authorization-${number}`);
    for (const id of ids) {
      await store.beginAuthorization(id, facts, { codeSeconds: 600, absoluteSeconds: undefined });
      await store.exchangeCode(id, { attempt: 'a', refreshSeconds: 600 });
    }
    for (const from of [0, 1, 2]) {
      for (const id of ids) {
        const step = { from, attempt: `b${from}`, refreshSeconds: 600, retryWindowSeconds: 0 };
        expect((await store.rotate(id, step)).outcome).to.equal('issued');
      }
    }
    await eventually(async () => {
      await clean();
      // The database counts with a delay of up to a second.
      const [row] = await database.query(
        `SELECT n_tup_upd::int AS changes, n_dead_tup <= 50 + 0.2 * n_live_tup AS "areFew"
          FROM pg_stat_user_tables WHERE relname = 'authorizations'`,
      );
      expect(row).to.deep.equal({ changes: 4 * ids.length, areFew: true });
    });
  });
});
