import { hash as hashWith, type Options } from '@node-rs/argon2';
import { expect } from 'chai';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';
import { hashesOf } from '../support/stopwatch.ts';

/** A former cost. */
const CHEAP: Options = { memoryCost: 8 * 1024, timeCost: 1, parallelism: 1 };

describe('sign-in', () => {
  const password = 'correct horse battery';
  const database = testDatabase();
  const signIn = createSignIn({ database });
  let hash: string;

  before(async () => {
    const accounts = createAccounts({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    hash = await hashPassword(password, { email: 'ada@demo.test' });
    await accounts.add({ email: 'ada@demo.test', name: 'Ada' });
    const suspended = await accounts.add({ email: 'gone@demo.test', name: 'Gus' });
    await database.query('UPDATE accounts SET password_hash = $1', [hash]);
    await accounts.suspend(suspended.id);
    await accounts.add({ email: 'invited@demo.test', name: 'Ines' });
  });

  for (const email of ['ada@demo.test', ' ADA@Demo.Test ']) {
    it(`the right password is accepted for the email "${email}"`, async () => {
      expect(await signIn({ email, password })).to.include({ name: 'Ada' });
    });
  }

  const refused: [reason: string, email: string, password: string][] = [
    ['a wrong password', 'ada@demo.test', 'wrong horse battery'],
    ['an empty password', 'ada@demo.test', ''],
    ['the right password with a NUL byte', 'ada@demo.test', `${password}\0`],
    ['an unknown account', 'nobody@demo.test', password],
    ['a suspended account', 'gone@demo.test', password],
    ['an account without a password', 'invited@demo.test', ''],
    ['no email address', '', password],
    ['an email address with a NUL byte', 'ada@demo.test\0', password],
    ['an email address with a lone surrogate', 'ada\uD800@demo.test', `\uDFFF${password}`],
    ['a very long email address', `${'a'.repeat(100_000)}@demo.test`, password],
    ['a very long password', 'ada@demo.test', 'a'.repeat(100_000)],
  ];
  for (const [reason, email, presented] of refused) {
    it(`a sign-in with ${reason} is refused after exactly one comparison, so its duration reveals nothing`, async () => {
      const compare = () => verifyPassword(hash, 'wrong horse battery', { email });
      const refuse = async () => {
        expect(await signIn({ email, password: presented })).to.equal('refused');
      };
      expect(await hashesOf(compare), 'the count itself').to.equal(1);
      expect(await hashesOf(refuse)).to.equal(1);
    });
  }

  it('a sign-in renews a hash of another cost in the same turn, and only for the right password', async () => {
    const cheap = await hashWith(password, CHEAP);
    const email = 'ada@demo.test';
    const stored = async (name = 'Ada') => {
      const rows = await database.query<{ hash: string }>(
        'SELECT password_hash AS hash FROM accounts WHERE name = $1',
        [name],
      );
      return rows[0]?.hash;
    };
    await database.query('UPDATE accounts SET password_hash = $1', [cheap]);
    expect(await signIn({ email, password: 'wrong horse battery' })).to.equal('refused');
    expect(await hashesOf(() => signIn({ email: 'gone@demo.test', password }))).to.equal(1);
    expect([await stored(), await stored('Gus')]).to.deep.equal([cheap, cheap]);

    const [cost = ''] = /^.*\$(?=.*\$)/.exec(hash) ?? [];
    expect(await hashesOf(() => signIn({ email, password }))).to.equal(2);
    expect(await stored()).to.satisfy((text: string) => text.startsWith(cost));
    expect(await hashesOf(() => signIn({ email, password }))).to.equal(1);
  });

  it('a hash that cannot be renewed fails no sign-in, and is reported', async () => {
    const cheap = await hashWith(password, CHEAP);
    await database.query('UPDATE accounts SET password_hash = $1', [cheap]);
    await database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'full'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION refuse();`);
    const reported: string[] = [];
    const log = { warn: (_: unknown, text?: string) => void reported.push(`${text}`) };
    const signInWithLog = createSignIn({ database, log });
    expect(await signInWithLog({ email: 'ada@demo.test', password })).to.include({ name: 'Ada' });
    expect(reported).to.deep.equal(['a password hash could not be renewed']);
    await database.query('DROP TRIGGER refuse ON accounts');
  });
});
