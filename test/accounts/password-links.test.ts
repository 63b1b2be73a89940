import { expect } from 'chai';
import type { Account } from '../../src/accounts/account.ts';
import {
  type AccountRegistry,
  createAccountRegistry,
} from '../../src/accounts/account-registry.ts';
import { createActivity } from '../../src/accounts/activity.ts';
import {
  createPasswordChanges,
  type PasswordChanges,
} from '../../src/accounts/password-changes.ts';
import { createPasswordLinks, type PasswordLinks } from '../../src/accounts/password-links.ts';
import { createSignIn, type SignIn } from '../../src/accounts/sign-in.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { Database } from '../../src/storage/queries.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { forEachDatabase } from '../support/databases.ts';

const DAY = 86_400;
const PASSWORD = 'seven green forklifts';
const ANOTHER = 'eight blue pallets, stacked';
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

forEachDatabase('links to set a password', (open) => {
  let database: Database;
  let accounts: AccountRegistry;
  let links: PasswordLinks;
  let changes: PasswordChanges;
  let signIn: SignIn;
  let account: Account;
  let time: TestClock;

  before(async () => {
    database = await open();
  });
  beforeEach(async () => {
    time = createTestClock();
    const parts = { database, changes: silentChangeFeed, clock: time.clock };
    const activity = createActivity(parts);
    accounts = createAccountRegistry(parts);
    links = createPasswordLinks({ ...parts, accounts, activity });
    changes = createPasswordChanges({ ...parts, accounts, links, activity });
    signIn = createSignIn({ database });
    await database.query('TRUNCATE accounts, activity CASCADE');
    account = await accounts.add({ email: 'ada@demo.test', name: 'Ada' });
  });
  afterEach(() => time.restore());

  const make = async (): Promise<string> => (await links.make(account, 'invitation', origin)).token;

  const canSignIn = async (password: string): Promise<boolean> =>
    (await signIn({ email: account.email, password })) !== 'refused';

  it('a link sets the password of its account, once', async () => {
    const token = await make();
    expect(await links.find(token)).to.deep.equal({ account, purpose: 'invitation' });
    const changed = await changes.changeByLink(token, PASSWORD, origin);
    expect(changed).to.include({ id: account.id, hasPassword: true });
    expect(await canSignIn(PASSWORD)).to.equal(true);

    expect(await links.find(token)).to.equal(undefined);
    expect(await changes.changeByLink(token, ANOTHER, origin)).to.equal(undefined);
    expect(await canSignIn(PASSWORD)).to.equal(true);
    expect(await canSignIn(ANOTHER)).to.equal(false);
  });

  it('of many who use one link at the same moment one sets the password', async () => {
    const token = await make();
    const passwords = Array.from({ length: 6 }, (_, index) => `${PASSWORD} ${index}`);
    const outcomes = await Promise.all(
      passwords.map((password) => changes.changeByLink(token, password, origin)),
    );
    expect(outcomes.filter(Boolean)).to.have.length(1);
    const winner = passwords[outcomes.findIndex(Boolean)] ?? '';
    expect(await canSignIn(winner)).to.equal(true);
  });

  it('looking at a link does not use it up', async () => {
    const token = await make();
    for (let looks = 0; looks < 3; looks += 1) expect(await links.find(token)).to.be.ok;
    expect(await changes.changeByLink(token, PASSWORD, origin)).to.be.ok;
  });

  it('a link is good for a day', async () => {
    const token = await make();
    time.advance(DAY - 1);
    expect(await links.find(token)).to.be.ok;
    time.advance(1);
    expect(await links.find(token)).to.equal(undefined);
    expect(await changes.changeByLink(token, PASSWORD, origin)).to.equal(undefined);
    expect(await links.removeExpired(10)).to.equal(1);
    expect(await links.removeExpired(10)).to.equal(0);
  });

  it('a password set by one link, or by the person, ends every other link', async () => {
    const [first, second] = [await make(), await make()];
    await changes.changeByLink(second, PASSWORD, origin);
    expect(await changes.changeByLink(first, ANOTHER, origin)).to.equal(undefined);

    const third = await make();
    await changes.change(account, ANOTHER, origin);
    expect(await links.find(third)).to.equal(undefined);
  });

  it('two links of one account, used at the same moment, set one password', async () => {
    const tokens = [await make(), await make()];
    const outcomes = await Promise.all(
      tokens.map((token, index) => changes.changeByLink(token, `${PASSWORD} ${index}`, origin)),
    );
    expect(outcomes.filter(Boolean)).to.have.length(1);
  });

  it('a refused password leaves the link as good as it was', async () => {
    const token = await make();
    for (const password of ['short', 'ada@demo.test', 'x'.repeat(257), 'passwordpassword']) {
      const refused = await changes.changeByLink(token, password, origin).catch((error) => error);
      expect(refused, password).to.include({ code: 'password_refused' });
    }
    expect(await changes.changeByLink(token, PASSWORD, origin)).to.be.ok;
  });

  it('the token is kept as a hash only', async () => {
    const token = await make();
    const [row] = await database.query('SELECT * FROM password_links');
    expect(row).to.include({ account_id: account.id });
    const log = await database.query('SELECT * FROM activity');
    expect(JSON.stringify([row, log])).not.to.include(token);
  });

  it('a suspended account has no good link', async () => {
    const token = await make();
    await accounts.suspend(account.id);
    expect(await links.find(token)).to.equal(undefined);
    expect(await changes.changeByLink(token, PASSWORD, origin)).to.equal(undefined);
    await accounts.resume(account.id);
    expect(await links.find(token)).to.be.ok;
  });

  it('what is no token is no link, without an error', async () => {
    const token = await make();
    for (const other of ['', token.slice(1), `${token}x`, `${token}\0`, 'x'.repeat(43)]) {
      expect(await links.find(other), other).to.equal(undefined);
      expect(await changes.changeByLink(other, PASSWORD, origin), other).to.equal(undefined);
    }
  });

  it('each change of the password ends every session, and is in the log', async () => {
    const changed = await changes.change(account, PASSWORD, origin);
    expect(changed.sessionGeneration).to.equal(account.sessionGeneration + 1);
    const again = await changes.changeByLink(await make(), ANOTHER, origin);
    expect(again?.sessionGeneration).to.equal(account.sessionGeneration + 2);
    const rows = await database.query<{ action: string }>(
      'SELECT action FROM activity ORDER BY id',
    );
    expect(rows.map(({ action }) => action)).to.deep.equal([
      ...['password_changed', 'password_link_made', 'password_changed'],
    ]);
  });
});
