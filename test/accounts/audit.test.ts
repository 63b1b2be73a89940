/** The audit: filters, pages, refused sign-ins, and reading it by cursor, each entry once, also with slow transactions and restores. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { createActivity, type NewActivity } from '../../src/accounts/activity/activity.ts';
import { ACTIONS, actionInEnglish } from '../../src/accounts/activity/activity-words.ts';
import { type AuditQuestion, createAudit } from '../../src/accounts/activity/audit.ts';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createAccounts } from '../support/accounts.ts';
import { createTestClock } from '../support/clock.ts';
import { onPostgres, testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startsOn } from '../support/service.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const HOUR = 3_600_000;

describe('the audit log can be filtered and read in pages, and describes every action', () => {
  const database = testDatabase();
  const audit = createAudit({ database });
  let ada: string;

  before(async () => {
    const time = createTestClock(new Date(START));
    const { clock } = time;
    const activity = createActivity({ database, clock });
    const accounts = createAccounts({ database, clock, changes: silentChangeFeed });
    ada = (await accounts.add({ email: 'ada@example.test', name: 'Ada' })).id;
    const client = { client_id: 'gate_ci_a', client_name: 'A' };
    const secret = { ...client, last_four: 'x7Qa' };
    const entries: NewActivity[] = [
      { action: 'signed_in', actor: 'person', accountId: ada },
      { action: 'client_secret_removed', actor: 'operator', details: secret },
      { action: 'connected', actor: 'person', accountId: ada, details: client },
      { action: 'tokens_revoked', actor: 'client', accountId: ada, details: client },
      { action: 'signed_in', actor: 'person', accountId: 'acc_gone' },
    ];
    for (const entry of entries) {
      await activity.record(entry);
      time.advance(HOUR / 1_000);
    }
    time.restore();
  });

  const at = (hours: number) => new Date(START + hours * HOUR);
  const both = { clientId: 'gate_ci_a', actor: 'person' } as const;
  const filters: [by: string, () => Partial<AuditQuestion>, hours: number[]][] = [
    ['no condition', () => ({}), [4, 3, 2, 1, 0]],
    ['person', () => ({ accountId: ada }), [3, 2, 0]],
    ['client', () => ({ clientId: 'gate_ci_a' }), [3, 2, 1]],
    ['action', () => ({ action: 'signed_in' }), [4, 0]],
    ['actor', () => ({ actor: 'operator' }), [1]],
    ['end', () => ({ end: { action: 'client_secret_removed', details: { last_four: 'x7Qa' } } }), [1]],
    ['start time', () => ({ since: at(3) }), [4, 3]],
    ['end time', () => ({ until: at(2) }), [1, 0]],
    ['an end time before all entries', () => ({ until: at(0) }), []],
    ['time and person', () => ({ since: at(1), until: at(4), accountId: ada }), [3, 2]],
    ['client and actor', () => both, [2]],
  ];
  for (const [by, filter, hours] of filters) {
    it(`the audit log filtered by ${by} lists only the matching entries, newest first`, async () => {
      const records = await audit.find({ limit: 100, ...filter() });
      expect(records.map(({ at }) => (at.getTime() - START) / HOUR)).to.deep.equal(hours);
    });
  }

  it('the next page of the audit log continues after the last entry of the page before', async () => {
    const pages: number[][] = [];
    let before: number | undefined;
    do {
      const page = await audit.find({ limit: 2, before });
      pages.push(page.map(({ at }) => (at.getTime() - START) / HOUR));
      before = page.at(-1)?.id;
    } while (before !== undefined);
    expect(pages).to.deep.equal([[4, 3], [2, 1], [0], []]);
  });

  it('an entry contains the email address of its account if the account still exists', async () => {
    const [ofDeletedAccount, , , , signedIn] = await audit.find({ limit: 5 });
    expect(signedIn).to.include({ email: 'ada@example.test', accountId: ada });
    expect(ofDeletedAccount).to.include({ accountId: 'acc_gone' }).and.not.have.property('email');
  });

  it('the docs map every action in the audit log to an OCSF class and activity, and no others', () => {
    const docs = readFileSync(new URL('../../docs/operations/audit.md', import.meta.url), 'utf8');
    const [, section = ''] = docs.split('## Actions and OCSF');
    const rows = section.split('\n').filter((row) => row.startsWith('| `'));
    const named = rows.flatMap((row) => {
      const [, actions = '', type, activity] = row.split('|');
      expect([type?.trim(), activity?.trim()], row).not.to.include('');
      return [...actions.replace(/\(.*\)/, '').matchAll(/`(\w+)`/g)].map(([, action]) => action);
    });
    expect(named.toSorted()).to.deep.equal(ACTIONS.toSorted());
  });

  it('every action in the audit log has a description', () => {
    expect(ACTIONS).to.include.members(['tokens_revoked', 'client_tokens_revoked']);
    for (const action of ACTIONS) {
      expect(actionInEnglish({ action, details: {} }).what, action).to.match(/^[A-Z]/);
    }
  });
});

describe('the audit log records sign-ins that are refused during an outage of PostgreSQL', () => {
  const database = testDatabase();
  let isAway = false;
  let isBroken = (_values: readonly unknown[]): boolean => false;
  let now = Date.parse('2026-01-01T00:00:00Z');
  const activity = createActivity({
    clock: () => now,
    database: {
      now: () => database.now(),
      query: (text, values) =>
        isAway || isBroken(values ?? []) ? Promise.reject(new Error('away')) : database.query(text, values),
    },
  });
  const refuse = (accountId: string) =>
    activity.recordRefused({ action: 'sign_in_failed', actor: 'person', accountId });
  const countsOf = async (accountId: string) =>
    (await activity.of(accountId, { limit: 10 })).map(({ details }) => details.count);

  before('add the accounts', () =>
    database.query(`INSERT INTO accounts (id, email, email_key, name, created_at)
      SELECT id, id, id, 'A', now() FROM unnest(ARRAY['acc_a', 'acc_b', 'acc_c']) id`),
  );

  it('a refused sign-in that could not be recorded is included in a later count', async () => {
    isAway = true;
    expect(await refuse('acc_a').catch(String)).to.equal('Error: away');
    await refuse('acc_a');
    isAway = false;
    await refuse('acc_a');
    now += 60_000;
    await activity.writeRefused();
    expect(await countsOf('acc_a')).to.deep.equal([3]);
  });

  it('if writing a count of refused sign-ins fails, the same count is written later', async () => {
    for (const _ of ['first', 'second', 'third']) await refuse('acc_b');
    now += 60_000;
    isAway = true;
    expect(await activity.writeRefused().catch(String)).to.equal('Error: away');
    isAway = false;
    await refuse('acc_b');
    now += 60_000;
    await activity.writeRefused();
    await activity.writeRefused(true);
    expect(await countsOf('acc_b')).to.deep.equal([3, undefined]);
  });

  it('a refused sign-in of an account that was deleted in the meantime is not recorded', async () => {
    for (const _ of ['first', 'second']) await refuse('acc_c');
    await database.query("DELETE FROM accounts WHERE id = 'acc_c'");
    now += 60_000;
    await activity.writeRefused();
    expect(await countsOf('acc_c')).to.deep.equal([undefined]);
  });

  it('a refused sign-in is recorded even after its session has ended; a failed write blocks no other entry', async () => {
    const session = { uid: 'ended', generation: 0 };
    const origin = { address: '192.0.2.1', browser: 'x', session };
    const refused = { action: 'sign_in_failed', actor: 'person', accountId: 'acc_a', origin } as const;
    const inSession = () => activity.recordRefused(refused);
    const before = (await countsOf('acc_a')).length;
    for (const _ of ['first', 'second']) {
      await inSession();
      await refuse('acc_b');
    }
    const others = (await countsOf('acc_b')).length;
    now += 60_000;
    isBroken = (values) => values.includes('acc_a');
    expect(await activity.writeRefused().catch(String)).to.equal('Error: away');
    expect((await countsOf('acc_b')).length).to.equal(others + 1);
    isBroken = () => false;
    await activity.writeRefused(true);
    expect((await countsOf('acc_a')).slice(0, 2)).to.deep.equal([1, undefined]);
    expect((await countsOf('acc_a')).length).to.equal(before + 2);
  });

  it('a refused sign-in is counted even if its account is unknown', async () => {
    for (const _ of ['first', 'second']) {
      await activity.recordRefused({ action: 'sign_in_refused', actor: 'person' });
    }
    now += 60_000;
    await activity.writeRefused();
    const rows = await database.query(`SELECT details -> 'count' AS count FROM activity
      WHERE action = 'sign_in_refused' AND account_id IS NULL ORDER BY id DESC`);
    expect(rows).to.deep.equal([{ count: 1 }, { count: null }]);
  });
});

onPostgres('the audit log by cursor', (open) => {
  let database: OpenDatabase;
  let trail: ReturnType<typeof createAuditTrail>;
  const record = async (...names: string[]): Promise<void> => {
    const activity = createActivity({ database, clock: Date.now });
    for (const name of names) {
      await activity.record({ action: 'doctor_ran', actor: 'service', details: { name } });
    }
  };
  const namesOf = (found: readonly { readonly details: object }[]) =>
    found.map(({ details }) => (details as { name: string }).name).join('');
  /** Reads to the end, in pages of two. */
  const readFrom = async (after: string) => {
    let names = '';
    let page = await trail.page(after, 2);
    for (; page.more; page = await trail.page(page.next, 2)) names += namesOf(page.entries);
    return { names: names + namesOf(page.entries), next: page.next };
  };
  /** Makes the rows and the generation of the log look as if they came from another cluster. */
  const restore = async (xact: string): Promise<void> => {
    await database.query('UPDATE activity SET xact = ($1::bigint + id)::text::xid8', [xact]);
    await database.query("UPDATE audit_generation SET origin = '1/1'");
  };

  before(async () => {
    database = await open();
  });
  beforeEach('an empty log, whose generation is that of another database', async () => {
    await database.query('TRUNCATE activity RESTART IDENTITY');
    await database.query('DELETE FROM audit_generation');
    await database.query('INSERT INTO audit_generation (generation, origin) VALUES ($1, $2)', ['0'.repeat(12), '1/1']);
    trail = createAuditTrail({ database });
    // This begins the generation of this database.
    await trail.page('start', 1);
  });

  it('entries of an earlier generation of the log are read first, and each entry is read once', async () => {
    await record('a', 'b', 'c');
    await database.query('UPDATE audit_generation SET old_until = (SELECT max(id) FROM activity)');
    await record('d', 'e');
    const { names, next } = await readFrom('start');
    expect(names).to.equal('abcde');
    expect((await readFrom(next)).names).to.equal('');
    await record('f');
    expect((await readFrom(next)).names).to.equal('f');
  });

  it('a cursor that is malformed, ahead of the log, or of another deployment is refused', async () => {
    await record('a');
    const { next } = await trail.page('start', 1);
    for (const wrong of ['', 'x', '\0', next.slice(1), `${next}0x`, `${next.slice(0, 13)}-1-2`]) {
      expect(await refusalOf(trail.page(wrong, 1)), wrong).to.equal('cursor_invalid');
    }
    const [generation = ''] = next.split('-');
    const other = generation.startsWith('0') ? `1${generation.slice(1)}` : `0${generation.slice(1)}`;
    for (const wrong of [`${other}-1-2`, `${generation}-${'9'.repeat(18)}-1`]) {
      expect(await refusalOf(trail.page(wrong, 1)), wrong).to.equal('cursor_of_another_log');
    }
  });

  for (const [what, xact] of [
    ['lower', '3'],
    ['higher', '900000000'],
  ] as const) {
    it(`after a restore into a cluster with another transaction counter (${what} numbers in the rows), each entry is read once, and old cursors are refused`, async () => {
      await record('a', 'b');
      const before = await readFrom('start');
      await restore(xact);
      await record('c');
      expect(await refusalOf(trail.page(before.next, 1))).to.equal('cursor_of_another_log');
      const { names, next } = await readFrom('start');
      expect(names).to.equal('abc');
      await record('d');
      expect((await readFrom(next)).names).to.equal('d');
    });
  }

  it('reading the audit log fails if `audit_generation` is empty, instead of repeating the same entries forever', async () => {
    await database.query('DELETE FROM audit_generation');
    const error = await trail.page('start', 1).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error).with.property('message').that.includes('audit_generation');
  });

  it('after a restore, a slow writer delays only readers of the log, not other writers', async () => {
    await record('a');
    await restore('900000000');
    const activity = createActivity({ database, clock: Date.now });
    await database.transaction(async (tx) => {
      const one = { action: 'doctor_ran', actor: 'service', details: { name: 'x' } } as const;
      await activity.record(one, tx);
      const reading = trail.page('start', 1).catch((error: unknown) => error);
      await eventually(async () => {
        const waiting = await database.query(
          "SELECT FROM pg_locks WHERE NOT granted AND relation = 'activity'::regclass",
        );
        expect(waiting).to.not.be.empty;
      });
      await record('b');
      expect(await reading).to.be.instanceOf(Error);
    });
    expect((await readFrom('start')).names).to.have.length(3);
  });

  it('while a transaction with a log entry is open, later entries are not read; afterwards all are read in order', async () => {
    const activity = createActivity({ database, clock: Date.now });
    const one = { action: 'doctor_ran', actor: 'service' } as const;
    const [slow, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = database.transaction(async (tx) => {
      await activity.record({ ...one, details: { name: 'x' } }, tx);
      slow.resolve();
      await end.promise;
    });
    await slow.promise;
    let early: Awaited<ReturnType<typeof readFrom>>;
    try {
      await record('y');
      early = await readFrom('start');
    } finally {
      end.resolve();
      await first;
    }
    expect(early.names).to.equal('');
    expect((await readFrom(early.next)).names).to.equal('xy');
  });
});

describe('the audit log in a copy of the database', () => {
  const start = startsOn('embedded');

  it('a node on a copy of the database starts a new generation of the log, so that cursors of the original are refused', async () => {
    const { database, clean } = await start();
    const log = () =>
      database.query<{ generation: string; origin: string }>('SELECT generation, origin FROM audit_generation');
    const [original] = await log();
    await database.query("UPDATE audit_generation SET origin = 'of the backup'");
    await clean();
    const [begun] = await log();
    expect(begun?.origin).to.equal(original?.origin);
    expect(begun?.generation).to.not.equal(original?.generation);
    await clean();
    expect(await log()).to.deep.equal([begun]);
  });
});
