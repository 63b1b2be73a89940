/** `sessions end --all`: one stored number that ends every session that began before it. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { failureOf } from '../storage/waiting.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, isSignedIn } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { operatorFor, refusalFrom, valueFrom } from './run-operator.ts';

const END_ALL = 'sessions end --all --yes';

describe('`sessions end --all` ends all sessions of a running service', () => {
  const on = startSeeded({ clock: true });
  const run = (words: string) => valueFrom(operatorFor(on.service), words);
  const begin = () => signedIn(on, on.seeded.person);

  it('`sessions end --all` ends each earlier session, and none that starts in the same second afterwards', async () => {
    const before = await begin();
    expect(await isSignedIn(before)).to.equal(true);
    expect(await run(END_ALL)).to.deep.equal({ browser_sessions_ended: true });
    await eventually(async () => expect(await isSignedIn(before)).to.equal(false));
    // The clock of the service stands still.
    const after = await begin();
    expect(await isSignedIn(after)).to.equal(true);
    expect(await isSignedIn(before)).to.equal(false);
    const { email } = on.seeded.person;
    expect(await run(`sessions list --account ${email}`)).to.have.length(1);
  });

  it('a session ended by an earlier command stays ended after a restore of an older database', async () => {
    const { database } = on.service;
    const restore = () => database.query('UPDATE lasting_numbers SET session_generation = 0');
    await restore();
    await run(END_ALL);
    const later = await eventually(async () => {
      const person = await begin();
      expect(await isSignedIn(person)).to.equal(true);
      return person;
    });
    on.clock.advance(1);
    await restore();
    await run(END_ALL);
    await eventually(async () => expect(await isSignedIn(later)).to.equal(false));
  });

  it('the only row of lasting_numbers cannot be deleted, and no second row can be inserted', async () => {
    const { database } = on.service;
    for (const statement of [
      'DELETE FROM lasting_numbers',
      'TRUNCATE lasting_numbers',
      'INSERT INTO lasting_numbers DEFAULT VALUES',
    ]) {
      expect(await failureOf(database.query(statement)), statement).to.be.instanceOf(Error);
    }
  });

  it('if lasting_numbers has no row, no session is active, not even a new one, and commands to end sessions fail', async () => {
    const { database } = on.service;
    const before = await begin();
    let remedy = '';
    await database.query('ALTER TABLE lasting_numbers RENAME TO kept');
    await database.query('CREATE TABLE lasting_numbers AS SELECT * FROM kept LIMIT 0');
    // The cache of the node forgets the account.
    await database.query("UPDATE accounts SET name = name || '.'");
    await eventually(async () => expect(await isSignedIn(before)).to.equal(false));
    const during = createPerson(on.issuer);
    await during.signIn(on.seeded.person).catch(() => {});
    expect(await isSignedIn(during)).to.equal(false);
    for (const command of [END_ALL, 'revoke --all --yes']) {
      const refused = await refusalFrom(operatorFor(on.service), command);
      expect(refused.code, command).to.equal('numbers_lost');
      remedy = /INSERT [^`]+/.exec(refused.remedy)?.[0] ?? '';
    }
    // What had ended stays ended: the numbers begin beyond the lost ones.
    await database.query(remedy);
    await database.query("UPDATE accounts SET name = name || '.'");
    await run(END_ALL);
    expect(await isSignedIn(before)).to.equal(false);
    expect(await isSignedIn(await begin())).to.equal(true);
    await database.query('DROP TABLE lasting_numbers');
    await database.query('ALTER TABLE kept RENAME TO lasting_numbers');
    await database.query("UPDATE accounts SET name = name || '.'");
    expect(await isSignedIn(await begin())).to.equal(true);
    expect(await isSignedIn(during)).to.equal(false);
  });
});
