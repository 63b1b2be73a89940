/** Deleted users are erased from the security log, however many entries it has. */
import { expect } from 'chai';
import { createErasureJob, eraseFromLog } from '../../src/accounts/erasure.ts';
import { systemClock } from '../../src/base/clock.ts';
import { deleteAccounts } from '../../src/changes/engine.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import type { Database } from '../../src/storage/queries.ts';
import type { Line } from '../import/import-file.ts';
import { push, SENDERS } from '../import/pushing.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { createAccounts } from '../support/accounts.ts';
import { onPostgres } from '../support/databases.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';

const PERSON = 'acc_aaaaaaaaaaaaaaaa';
const OWNER = 'acc_bbbbbbbbbbbbbbbb';

const BY_THEM = { by_account_id: PERSON, by_name: 'Pat' };
const ABOUT_THEM = { person_id: PERSON, person_name: 'Pat' };

const addAccount = (database: Database, id: string) =>
  database.query(
    `INSERT INTO accounts (id, email, email_key, name, external_id, created_at)
      VALUES ($1, $2, $2, 'Pat Person', $1, now())`,
    [id, `${id.toLowerCase()}@demo.test`],
  );

/** Adds entries to the log of `account`, with these details. */
const addEntries = (
  database: Database,
  { account, details = {}, count = 1 }: { account: string; details?: object; count?: number },
) =>
  database.query(
    `INSERT INTO activity (at, account_id, actor, action, details, address, browser)
      SELECT now(), $1, 'person', 'membership_removed', $2, '192.0.2.1', 'Firefox'
        FROM generate_series(1, $3)`,
    [account, JSON.stringify(details), count],
  );

describeOn([postgresServer], 'the deletion of an account', () => {
  const on = startSeeded({ on: 'postgres', settings: { senders: SENDERS } });

  /** A person who is named by three entries: one of their log, two of another user's. */
  beforeEach('add the person', async () => {
    const { database } = on.service;
    await addAccount(database, PERSON);
    await addEntries(database, { account: PERSON });
    await addEntries(database, { account: OWNER, details: BY_THEM });
    await addEntries(database, { account: OWNER, details: ABOUT_THEM });
  });

  for (const [how, remove] of Object.entries({
    'a command': () => valueFrom(operatorFor(on.service), `accounts delete ${PERSON} --yes`),
    'a pushed change': async () => {
      const line: Line = { type: 'account', id: PERSON, removed: true, deleted: true };
      expect((await push(on.service, [line])).results).to.deep.equal(['ok']);
    },
  })) {
    it(`the deletion of an account by ${how} erases the three entries that name the user`, async () => {
      await remove();
      expect(await entriesWith(on.service.database)).to.equal(0);
    });
  }
});

/** Returns how many entries name the person or have the person's address. */
async function entriesWith(database: Database): Promise<number> {
  const rows = await database.query(
    `SELECT FROM activity WHERE details ?| ARRAY['by_name', 'person_name', 'subject', 'api_key_name']
      OR (account_id = $1 AND (address IS NOT NULL OR browser IS NOT NULL))`,
    [PERSON],
  );
  return rows.length;
}

onPostgres('the log of a deleted user', (open) => {
  let database: OpenDatabase;
  const remove = () => createAccounts({ database, changes: silentChangeFeed, clock: systemClock }).remove(PERSON);

  before(async () => {
    database = await open();
  });
  beforeEach(() => database.query('TRUNCATE accounts, activity, erased_people CASCADE'));

  it('the deletion of an account erases a limited number of entries at once, and a job erases the rest', async () => {
    await addAccount(database, PERSON);
    const own = { subject: 'idp-17', api_key_name: 'Till', ...BY_THEM, ...ABOUT_THEM };
    await addEntries(database, { account: PERSON, details: own, count: 700 });
    await addEntries(database, { account: OWNER, details: BY_THEM, count: 700 });
    await addEntries(database, { account: OWNER, details: ABOUT_THEM, count: 700 });
    await remove();
    expect(await entriesWith(database)).to.equal(1_100);
    const job = createErasureJob(database);
    expect([await job(600), await job(600), await job(600)]).to.deep.equal([600, 500, 0]);
    expect(await entriesWith(database)).to.equal(0);
    const kept = await database.query(`SELECT FROM activity WHERE account_id = $1 AND address IS NOT NULL`, [OWNER]);
    expect(kept, 'addresses of other users').to.have.length(1_400);
  });

  it('a second deletion of an account during the erasure of its log entries changes nothing', async () => {
    await addAccount(database, PERSON);
    await addEntries(database, { account: PERSON, count: 1_500 });
    await remove();
    await database.transaction((tx) => deleteAccounts(tx, [PERSON]));
    expect(await entriesWith(database)).to.equal(500);
    await createErasureJob(database)(1_000);
    expect(await entriesWith(database)).to.equal(0);
  });

  it('all entries are erased if the account is added and deleted again before the first erasure has ended', async () => {
    await addAccount(database, PERSON);
    await addEntries(database, { account: PERSON, count: 1_500 });
    await remove();
    await addAccount(database, PERSON);
    await database.query("UPDATE activity SET address = '192.0.2.1' WHERE account_id = $1", [PERSON]);
    await remove();
    await createErasureJob(database)(3_000);
    expect(await entriesWith(database)).to.equal(0);
  });

  it('if two users who are named by one entry are deleted together, both are erased from it', async () => {
    const details = { by_account_id: OWNER, by_name: 'Olga', ...ABOUT_THEM };
    await addEntries(database, { account: OWNER, details });
    await database.transaction((tx) => eraseFromLog(tx, [OWNER, PERSON]));
    expect(await entriesWith(database)).to.equal(0);
    expect(await createErasureJob(database)(10)).to.equal(0);
  });
});
