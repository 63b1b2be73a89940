/** `sessions end --all`: one stored number that ends every session that began before it. */
import { expect } from 'chai';
import { failureOf } from '../storage/waiting.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, type Person } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { operatorFor, refusalFrom, valueFrom } from './run-operator.ts';

const END_ALL = 'sessions end --all --yes';

describe('sessions end --all, on a running service', () => {
  const on = startSeeded({ clock: true });
  const run = (words: string) => valueFrom(operatorFor(on.service), words);
  const isSignedIn = async (person: Person): Promise<boolean> => (await person.get('/profile')).status === 200;

  async function signedIn(): Promise<Person> {
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    return person;
  }

  it('ends each session that began before it, and none that begins in the same second afterwards', async () => {
    const before = await signedIn();
    expect(await isSignedIn(before)).to.equal(true);
    expect(await run(END_ALL)).to.deep.equal({ browser_sessions_ended: true });
    await eventually(async () => expect(await isSignedIn(before)).to.equal(false));
    // The clock of the service stands still.
    const after = await signedIn();
    expect(await isSignedIn(after)).to.equal(true);
    expect(await isSignedIn(before)).to.equal(false);
    const { email } = on.seeded.person;
    expect(await run(`sessions list --account ${email}`)).to.have.length(1);
  });

  it('a session that began after an earlier end does not survive the restore of a database from before that end', async () => {
    const { database } = on.service;
    const restore = () => database.query('UPDATE session_cutoff SET generation = 0');
    await restore();
    await run(END_ALL);
    const later = await eventually(async () => {
      const person = await signedIn();
      expect(await isSignedIn(person)).to.equal(true);
      return person;
    });
    on.clock.advance(1);
    await restore();
    await run(END_ALL);
    await eventually(async () => expect(await isSignedIn(later)).to.equal(false));
  });

  it('exactly one number is stored: it can be neither removed nor added twice', async () => {
    const { database } = on.service;
    for (const statement of [
      'DELETE FROM session_cutoff',
      'TRUNCATE session_cutoff',
      'INSERT INTO session_cutoff VALUES (0)',
    ]) {
      expect(await failureOf(database.query(statement)), statement).to.be.instanceOf(Error);
    }
    expect(await database.query('SELECT FROM session_cutoff')).to.have.length(1);
  });

  it('without the number no session is active, also one that begins then, and the command says how to restore it', async () => {
    const { database } = on.service;
    const [kept] = await database.query<{ generation: string }>('SELECT * FROM session_cutoff');
    const before = await signedIn();
    await database.query('ALTER TABLE session_cutoff DISABLE TRIGGER session_cutoff_kept');
    await database.query('DELETE FROM session_cutoff');
    await database.query('ALTER TABLE session_cutoff ENABLE TRIGGER session_cutoff_kept');
    // The cache of the node forgets the account.
    await database.query("UPDATE accounts SET name = name || '.'");
    await eventually(async () => expect(await isSignedIn(before)).to.equal(false));
    const during = createPerson(on.issuer);
    await during.signIn(on.seeded.person).catch(() => {});
    expect(await isSignedIn(during)).to.equal(false);
    const refused = await refusalFrom(operatorFor(on.service), END_ALL);
    expect(refused.code).to.equal('session_cutoff_missing');
    await database.query(/`(INSERT .*?)`/.exec(refused.remedy ?? '')?.[1] ?? '');
    await database.query('UPDATE session_cutoff SET generation = $1', [kept?.generation]);
    const list = `sessions list --account ${on.seeded.person.email}`;
    const listed = await run(list);
    expect(await isSignedIn(await signedIn())).to.equal(true);
    expect(await isSignedIn(during)).to.equal(false);
    // Only `before`: a session that began without the number is not even listed.
    expect(listed).to.have.length(1);
  });
});
