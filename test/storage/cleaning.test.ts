/** Cleaning reports its results, because an operator must see a job that fails every round. */
import { expect } from 'chai';
import { pino } from 'pino';
import { startCleaning } from '../../src/storage/cleaning.ts';
import { eventually } from '../support/eventually.ts';

describe('cleaning', () => {
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
    await eventually(() => expect(reported.at(-1)).to.equal('grants 0'));
    await cleaning.stop();
    expect(reported).to.deep.equal(['broken failed', 'tokens 1000', 'tokens 7', 'grants 0']);
    expect(lines).to.have.length(1);
    expect(JSON.parse(lines[0] ?? '')).to.include({ level: 40, job: 'broken' });
  });
});
