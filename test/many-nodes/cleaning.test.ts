/** Two nodes that remove old records at the same moment. */
import { expect } from 'chai';
import { pino } from 'pino';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { systemClock } from '../../src/base/clock.ts';
import { createClientRequests } from '../../src/clients/client-requests.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { openPatiently } from '../support/databases.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';

describeOn([postgresServer], 'cleaning, by two nodes in parallel', () => {
  const on = startSeeded({ on: 'postgres' });
  const databases: OpenDatabase[] = [];

  before(async () => {
    for (let node = 0; node < 2; node += 1) {
      databases.push(await openPatiently(on.service.settings.storage));
    }
  });
  after(async () => {
    await Promise.all(databases.map((database) => database.close()));
  });

  it('a node skips old log entries and problems that another node is deleting, and does not wait for it', async () => {
    const [here, there] = databases;
    if (!here || !there) throw new Error('two databases are open');
    const { confidential } = on.clients;
    await on.service.database.query(
      `INSERT INTO activity (at, actor, action, details)
        SELECT '2000-01-01', 'service', 'doctor_ran', '{}' FROM generate_series(1, 20)`,
    );
    await on.service.database.query(
      `INSERT INTO client_requests (client_id, at, step, error, cause, request_id, share)
        SELECT $1, '2000-01-01', 'token', 'invalid_grant', 'long ago', 'req_' || n, 'client' FROM generate_series(1, 20) n`,
      [confidential.id],
    );
    const old = new Date('2001-01-01');
    const parts = { clock: systemClock, log: pino({ level: 'silent' }) };
    const { clients } = on.service;
    await here.transaction(async (tx) => {
      // This node has removed the entries, but has not committed yet when the other node starts.
      expect(await createActivity({ ...parts, database: tx }).removeOlderThan(old, 10)).to.equal(10);
      expect(await createActivity({ ...parts, database: there }).removeOlderThan(old, 20)).to.equal(10);
    });
    await here.transaction(async (tx) => {
      const removing = createClientRequests({ ...parts, clients, database: { ...here, ...tx } });
      expect(await removing.removeExpired(10)).to.equal(10);
      const other = createClientRequests({ ...parts, clients, database: there });
      expect(await other.removeExpired(20)).to.equal(10);
    });
  });
});
