/** The node that writes activity to the log, and what happens when it ends or is killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { pino } from 'pino';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { startAuditOutput } from '../../src/accounts/activity/audit-output.ts';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import type { Database } from '../../src/storage/queries.ts';
import { testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';

const idsIn = (lines: readonly string[]): number[] =>
  lines.filter((line) => line.includes('"type":"audit"')).map((line) => JSON.parse(line).id as number);

describe('a node whose output has no reader any more', () => {
  const database = testDatabase();

  it('lines that could not be written go to the log of another node', async () => {
    const lines: string[] = [];
    const readers = [
      { write: () => {}, flush: (done: (error: Error) => void) => done(new Error('EPIPE')) },
      { write: (line: string) => lines.push(line) },
    ];
    const trail = createAuditTrail({ database });
    await trail.page('start', 1);
    await createActivity({ database, clock: Date.now }).record({
      action: 'doctor_ran',
      actor: 'service',
    });
    const outputs = readers.map((reader) => startAuditOutput({ trail, log: pino({ level: 'silent' }, reader) }));
    await eventually(() => expect(idsIn(lines)).to.have.length(1));
    await Promise.all(outputs.map((output) => output.stop()));
  });

  it('the log of a process reports that its lines are lost when the reader has gone', async () => {
    const script = `import { createProcessLog } from './src/host/process-log.ts';
      const log = createProcessLog({ level: 'info', format: 'numbers' });
      process.stdin.once('data', () => {
        log.info('lost');
        log.flush((error) => console.error(error ? 'lost' : 'written'));
        process.stdin.destroy();
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    let answer = '';
    child.stderr.on('data', (text) => {
      answer += text;
    });
    child.stdout.destroy();
    child.stdin.end('now');
    await once(child, 'close');
    expect(answer).to.equal('lost\n');
  });
});

describe('the queries of an idle deployment for the activity on the log', () => {
  const database = testDatabase();

  it('the node that has the lease reads once a second, and another node only asks for the lease', async () => {
    const trail = createAuditTrail({ database });
    await trail.page('start', 1);
    const log = pino({ level: 'silent' }, { write: () => {} });
    const startOne = () => {
      const asked = { reads: 0, claims: 0 };
      const counting: Database = {
        ...database,
        query: (text, values) => {
          if (text.includes('FROM activity')) asked.reads += 1;
          else asked.claims += 1;
          return database.query(text, values);
        },
        transaction: () => expect.fail('not called'),
      };
      const output = startAuditOutput({ trail: createAuditTrail({ database: counting }), log });
      return { asked, output };
    };
    const began = performance.now();
    const one = startOne();
    await eventually(() => expect(one.asked.reads).to.equal(1));
    const other = startOne();
    await eventually(() => expect(other.asked.claims).to.be.at.least(2));
    const seconds = (performance.now() - began) / 1_000;
    expect(other.asked.reads).to.equal(0);
    expect(one.asked.reads).to.be.at.most(Math.ceil(seconds) + 1);
    expect(one.asked.claims).to.be.at.most(2 * Math.ceil(seconds / 3.3) + 2);
    await one.output.stop();
    await createActivity({ database, clock: Date.now }).record({
      action: 'doctor_ran',
      actor: 'service',
    });
    await eventually(async () => expect(await trail.oldestNotOut()).to.equal(undefined));
    await other.output.stop();
  });
});
