/** Approvals of an unchecked client while another node holds a lock that they need. */
import { expect } from 'chai';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addPerson, addTestClient, REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const limits = { peoplePerUncheckedClient: 2 };

describeOn([postgresServer], 'approvals of one client while another node holds its lock', () => {
  const on = startSeeded({ on: 'postgres', settings: { limits } });

  /** Adds an unverified client, and connects another session to the database, in which a test takes locks. */
  async function clientAndSession(name: string): Promise<{ clientId: string; session: pg.Client }> {
    const { id } = await addTestClient(on.service, name, { ownerAccountId: on.seeded.other.accountId });
    const session = new pg.Client({ connectionString: on.service.settings.storage.databaseUrl });
    await session.connect();
    return { clientId: id, session };
  }

  it('the locked account of one person refuses only this person', async () => {
    const add = (_: unknown, n: number) => addPerson(on.service, 'Locked', `l${n}@example.test`);
    const [locked, ...others] = await Promise.all(Array.from({ length: 6 }, add));
    const { clientId, session: holder } = await clientAndSession('Busy');
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT FROM accounts WHERE id = $1 FOR UPDATE', [locked?.accountId]);
      const consent = { clientId, name: 'Busy', hosts: [REDIRECT_URI], maxPeople: 99 };
      const approve = (accountId = '') => on.service.connections.rememberConsent({ ...consent, accountId });
      const refused = approve(locked?.accountId).catch((error: Error) => error);
      const stored = await Promise.all(others.map(({ accountId }) => approve(accountId)));
      expect(stored.filter((connected) => connected?.isNew)).to.have.lengthOf(5);
      expect(await refused).to.include({ code: 'statement_too_long' });
    } finally {
      await holder.end();
    }
  });

  it('they use one connection, and all connect as soon as the lock is free', async () => {
    const add = (_: unknown, n: number) => addPerson(on.service, 'Waiter', `w${n}@example.test`);
    const waiting = await Promise.all(Array.from({ length: 12 }, add));
    const { clientId, session: frozen } = await clientAndSession('Frozen');
    try {
      await frozen.query(`SELECT pg_advisory_lock(hashtext('gatehouse people'), hashtext($1))`, [clientId]);
      const consent = { clientId, name: 'Frozen', hosts: [REDIRECT_URI], maxPeople: 99 };
      const approvals = Promise.all(
        waiting.map(({ accountId }) => on.service.connections.rememberConsent({ ...consent, accountId })),
      );
      const blocked = async (): Promise<number | null> => {
        const { rowCount } = await frozen.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database()
            AND wait_event_type = 'Lock' AND wait_event = 'advisory'`,
        );
        return rowCount;
      };
      await eventually(async () => expect(await blocked()).to.be.at.least(1));
      // The pool has ten connections: these reads would time out if all of them waited.
      const reads = waiting.map(({ accountId }) => on.service.connections.listOf(accountId));
      expect((await Promise.all(reads)).flat()).to.deep.equal([]);
      expect(await blocked()).to.equal(1);
      await frozen.query('SELECT pg_advisory_unlock_all()');
      expect((await approvals).filter((connected) => connected?.isNew)).to.have.lengthOf(12);
    } finally {
      await frozen.end();
    }
  });
});
