/** `sessions end --all`: one stored number that ends every session that began before it. */
import { expect } from 'chai';
import { listenForChanges } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, type Person } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { operatorFor, operatorOn, valueFrom } from './run-operator.ts';

const END_ALL = 'sessions end --all --yes';

describe('sessions end --all, on a running service', () => {
  const on = startSeeded({ clock: true });
  const run = (words: string) => valueFrom(operatorFor(on.service), words);
  const isSignedIn = async (person: Person): Promise<boolean> =>
    (await person.get('/profile')).status === 200;

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

  it('explain says that the session was ended with all others', async () => {
    await signedIn();
    const { email } = on.seeded.person;
    const [{ id }] = await run(`sessions list --account ${email}`);
    await run(END_ALL);
    const explained = await run(`explain ${id}`);
    expect(explained.state).to.equal('revoked');
    expect(explained.why).to.include('or of all people');
  });
});

describeOn([postgresServer], 'sessions end --all, with many people', () => {
  let database: OpenDatabase;
  before('open the database', async () => {
    database = await openTestDatabase('postgres');
    await database.query(`INSERT INTO accounts (id, email, email_key, name, created_at)
      SELECT 'acc_' || lpad(n::text, 16, '0'), n || '@demo.test', n || '@demo.test', 'A', now()
        FROM generate_series(1, 2000) n`);
  });
  after('close the database', () => database.close());

  it('writes no row of an account, and sends each node one notification', async () => {
    const rows = () => database.query('SELECT id, ctid::text FROM accounts ORDER BY id');
    const changes = await listenForChanges(database, TIMEOUT_FACTOR);
    try {
      const heard: string[] = [];
      changes.onChange((topic) => void heard.push(topic));
      const before = await rows();
      await valueFrom(operatorOn(database), END_ALL);
      await eventually(async () => expect(heard).to.deep.equal(['everything']));
      expect(await rows()).to.deep.equal(before);
    } finally {
      await changes.close();
    }
  });
});
