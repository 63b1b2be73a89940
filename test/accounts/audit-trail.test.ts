/** Reading the security log by cursor: each entry once, also with slow transactions and restores. */
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { Refusal } from '../../src/base/refusal.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { onPostgres, testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';

onPostgres('the audit log by cursor', (open) => {
  let database: OpenDatabase;
  let trail: ReturnType<typeof createAuditTrail>;
  const record = async (...names: string[]): Promise<void> => {
    const activity = createActivity({ database, clock: Date.now });
    for (const name of names) {
      await activity.record({ action: 'doctor_ran', actor: 'service', details: { name } });
    }
  };
  const namesOf = (found: readonly { readonly record: { readonly details: object } }[]) =>
    found.map(({ record: { details } }) => (details as { name: string }).name).join('');
  /** Reads to the end, in pages of two. */
  const readFrom = async (after: string) => {
    let names = '';
    let page = await trail.page(after, 2);
    for (; page.more; page = await trail.page(page.next, 2)) names += namesOf(page.entries);
    return { names: names + namesOf(page.entries), next: page.next };
  };
  /** Puts out what a node would put on its log. */
  const out = async (): Promise<string> => {
    const held = await trail.claim('node');
    if (!held) throw new Error('no lease');
    const found = await trail.read(held, 10);
    const last = found.at(-1);
    if (last) await trail.advance('node', last.line.cursor);
    return namesOf(found);
  };
  const codeOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(Refusal);
    return (error as Refusal).code;
  };
  /** Makes the rows and the place of the log look as if they came from another cluster. */
  const restore = async (xact: string): Promise<void> => {
    await database.query('UPDATE activity SET xact = ($1::bigint + id)::text::xid8', [xact]);
    await database.query(
      `UPDATE audit_output o SET origin = '1/1',
        xact = CASE WHEN xact = '0' THEN xact ELSE (SELECT xact FROM activity WHERE id = o.id) END`,
    );
  };

  beforeEach(async () => {
    database = await open();
    trail = createAuditTrail({ database });
    // The database is a copy of another: this begins its generation.
    await trail.page('start', 1);
  });

  it('entries of an earlier generation come first, and each entry is read once', async () => {
    await record('a', 'b', 'c');
    await database.query('UPDATE audit_output SET old_until = (SELECT max(id) FROM activity)');
    await record('d', 'e');
    const { names, next } = await readFrom('start');
    expect(names).to.equal('abcde');
    expect((await readFrom(next)).names).to.equal('');
    await record('f');
    expect((await readFrom(next)).names).to.equal('f');
  });

  it('a cursor that is malformed, ahead, or of another deployment is refused', async () => {
    await record('a');
    const { next } = await trail.page('start', 1);
    for (const wrong of ['', 'x', '\0', next.slice(1), `${next}0x`, `${next.slice(0, 13)}-1-2`]) {
      expect(await codeOf(trail.page(wrong, 1)), wrong).to.equal('cursor_invalid');
    }
    const [generation = ''] = next.split('-');
    const other = generation.startsWith('0') ? `1${generation.slice(1)}` : `0${generation.slice(1)}`;
    for (const wrong of [`${other}-1-2`, `${generation}-${'9'.repeat(18)}-1`]) {
      expect(await codeOf(trail.page(wrong, 1)), wrong).to.equal('cursor_of_another_log');
    }
  });

  for (const [what, xact] of [
    ['lower', '3'],
    ['higher', '900000000'],
  ] as const) {
    it(`after a restore into a cluster with another counter, with ${what} numbers in the rows, each entry is read once and old cursors are refused`, async () => {
      await record('a', 'b');
      const before = await readFrom('start');
      await restore(xact);
      await record('c');
      expect(await codeOf(trail.page(before.next, 1))).to.equal('cursor_of_another_log');
      const { names, next } = await readFrom('start');
      expect(names).to.equal('abc');
      await record('d');
      expect((await readFrom(next)).names).to.equal('d');
    });
  }

  it('after a restore, no entry is missing on the log that was not out before', async () => {
    await out();
    await record('a', 'b');
    expect(await out()).to.equal('ab');
    await record('c', 'd');
    await restore('900000000');
    await record('e');
    expect((await trail.oldestNotOut())?.getTime()).to.be.a('number');
    expect(await out()).to.equal('cde');
    expect(await out()).to.equal('');
    expect(await trail.oldestNotOut()).to.equal(undefined);
  });

  it('a second restore does not put entries on the log again that were out before the first one', async () => {
    await record('a', 'b');
    expect(await out()).to.equal('ab');
    await restore('900000000');
    await record('c');
    expect(await out()).to.equal('c');
    await record('d');
    expect(await out()).to.equal('d');
    // A restore of the restored database, whose transaction numbers begin below those of its rows.
    await database.query("UPDATE audit_output SET origin = '2/2'");
    expect(await out()).to.equal('');
    await restore('3');
    expect(await out()).to.equal('');
    await restore('900000000');
    expect(await out()).to.equal('');
    await record('e');
    await restore('3');
    expect(await out()).to.equal('e');
  });

  it('a node that read before a restore cannot move the place of the log after it', async () => {
    await record('a');
    const before = await trail.claim('node');
    if (!before) throw new Error('no lease');
    const [read] = await trail.read(before, 10);
    await record('b');
    await restore('900000000');
    expect(await trail.advance('node', `${read?.line.cursor}`)).to.equal(undefined);
    await trail.page('start', 1);
    expect(await trail.advance('node', `${read?.line.cursor}`)).to.equal(undefined);
    expect(await out()).to.equal('ab');
  });

  it('a table without the place of the log is an error, and not an endless repetition', async () => {
    await database.query('DELETE FROM audit_output');
    const error = await trail.page('start', 1).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error).with.property('message').that.includes('audit_output');
  });

  it('the lease on the log has one holder until it is given up or expires by the clock of the database', async () => {
    expect(await trail.claim('one')).to.have.property('generation');
    expect(await trail.claim('two')).to.equal(undefined);
    expect(await trail.claim('one')).to.have.property('generation');
    await database.query("UPDATE audit_output SET expires_at = clock_timestamp() - interval '1 s'");
    expect(await trail.claim('two')).to.have.property('generation');
    expect(await trail.advance('one', (await trail.page('start', 1)).next)).to.equal(undefined);
    await trail.release('two');
    expect(await trail.claim('one')).to.have.property('generation');
  });

  it('after a restore, a slow writer holds up only the reader of the log, not other writers', async () => {
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

  it('an entry whose transaction is slower than a later one is read once, in its own place', async () => {
    const activity = createActivity({ database, clock: Date.now });
    const one = { action: 'doctor_ran', actor: 'service' } as const;
    let commit = () => {};
    const slow = Promise.withResolvers<void>();
    const first = database.transaction(async (tx) => {
      await activity.record({ ...one, details: { name: 'x' } }, tx);
      slow.resolve();
      await new Promise<void>((resolve) => {
        commit = resolve;
      });
    });
    await slow.promise;
    let early: Awaited<ReturnType<typeof readFrom>>;
    try {
      await record('y');
      early = await readFrom('start');
      expect((await trail.oldestNotOut())?.getTime()).to.be.a('number');
    } finally {
      commit();
      await first;
    }
    expect(early.names).to.equal('');
    expect((await readFrom(early.next)).names).to.equal('xy');
  });
});

describeOn([postgresServer], 'the audit log of 20,000 entries, restored elsewhere', () => {
  const database = testDatabase();

  it('begins a generation by reading the entries that are not out, not all', async () => {
    await database.query(
      `INSERT INTO activity (at, actor, action, details)
        SELECT now(), 'service', 'doctor_ran', '{"name":"a"}' FROM generate_series(1, 20000)`,
    );
    await database.query('ANALYZE activity');
    await database.query(
      `UPDATE audit_output SET origin = '1/1', old_until = 0, (xact, id) =
        (SELECT xact, id FROM activity ORDER BY id OFFSET 19989 LIMIT 1)`,
    );
    const read = await database.transaction(async (tx) => {
      // The blocks of the log and of its indexes that this connection has read.
      const blocks = async (): Promise<number> => {
        const [row] = await tx.query<{ blocks: number }>(
          `SELECT sum(pg_stat_get_xact_blocks_fetched(c.oid))::int AS blocks FROM pg_class c
            WHERE c.oid = 'activity'::regclass
              OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'activity'::regclass)`,
        );
        return row?.blocks ?? 0;
      };
      const before = await blocks();
      await createAuditTrail({ database: { ...database, query: tx.query, transaction: (run) => run(tx) } }).claim(
        'node',
      );
      return (await blocks()) - before;
    });
    expect(read).to.be.within(1, 100);
    await database.query('TRUNCATE activity');
  });

  it('loses no entry, however many were not out', async () => {
    await database.query(
      `INSERT INTO activity (at, actor, action, details)
        SELECT now(), 'service', 'doctor_ran', '{"name":"a"}' FROM generate_series(1, 20000)`,
    );
    // The transactions count down: the lowest ids are not out, and the first one is the last of them.
    await database.query('UPDATE activity SET xact = (1000000000 - id)::text::xid8');
    await database.query(
      `UPDATE audit_output SET origin = '1/1', old_until = 0, (xact, id) =
        (SELECT xact, id FROM activity ORDER BY id OFFSET $1 LIMIT 1)`,
      [12_000],
    );
    const trail = createAuditTrail({ database });
    const place = await trail.claim('node');
    const [next] = await trail.read(place ?? expect.fail('no lease'), 1);
    const [first] = await database.query<{ id: string }>('SELECT min(id) AS id FROM activity');
    expect(`${next?.line.id}`).to.equal(first?.id);
  });
});
