/** Reading the security log by cursor: each entry once, also with slow transactions and restores. */
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createAuditTrail } from '../../src/accounts/activity/audit-trail.ts';
import { Refusal } from '../../src/base/refusal.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startsOn } from '../support/service.ts';

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
  const codeOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(Refusal);
    return (error as Refusal).code;
  };
  /** Makes the rows and the generation of the log look as if they came from another cluster. */
  const restore = async (xact: string): Promise<void> => {
    await database.query('UPDATE activity SET xact = ($1::bigint + id)::text::xid8', [xact]);
    await database.query("UPDATE audit_generation SET origin = '1/1'");
  };

  beforeEach(async () => {
    database = await open();
    trail = createAuditTrail({ database });
    // The database is a copy of another: this begins its generation.
    await trail.page('start', 1);
  });

  it('entries of an earlier generation come first, and each entry is read once', async () => {
    await record('a', 'b', 'c');
    await database.query('UPDATE audit_generation SET old_until = (SELECT max(id) FROM activity)');
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

  it('a table without the generation of the log is an error, and not an endless repetition', async () => {
    await database.query('DELETE FROM audit_generation');
    const error = await trail.page('start', 1).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error).with.property('message').that.includes('audit_generation');
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
    } finally {
      commit();
      await first;
    }
    expect(early.names).to.equal('');
    expect((await readFrom(early.next)).names).to.equal('xy');
  });
});

describe('the log of a copy of the database', () => {
  const start = startsOn('embedded');

  it('a node begins the generation of its log, so that no cursor of before is accepted after a copy of the copy came back', async () => {
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
