import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { hashPassword, verifyPassword } from '../../src/accounts/passwords/password.ts';
import { createSignIn } from '../../src/accounts/sign-in.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';
import { workOf } from '../support/stopwatch.ts';

describe('sign in', () => {
  const password = 'correct horse battery';
  const database = testDatabase();
  const signIn = createSignIn({ database });
  let hash: string;

  before(async () => {
    const accounts = createAccountRegistry({
      database,
      changes: silentChangeFeed,
      clock: systemClock,
    });
    hash = await hashPassword(password, { email: 'ada@demo.test' });
    await accounts.add({ email: 'ada@demo.test', name: 'Ada' });
    const gone = await accounts.add({ email: 'gone@demo.test', name: 'Gus' });
    await database.query('UPDATE accounts SET password_hash = $1', [hash]);
    await accounts.suspend(gone.id);
    await accounts.add({ email: 'invited@demo.test', name: 'Ines' });
  });

  for (const email of ['ada@demo.test', ' ADA@Demo.Test ']) {
    it(`the right password of the person is accepted, the email being "${email}"`, async () => {
      expect(await signIn({ email, password })).to.include({ name: 'Ada' });
    });
  }

  const refused: [reason: string, email: string, password: string][] = [
    ['a wrong password', 'ada@demo.test', 'wrong horse battery'],
    ['an empty password', 'ada@demo.test', ''],
    ['the right password with a NUL byte', 'ada@demo.test', `${password}\0`],
    ['an unknown person', 'nobody@demo.test', password],
    ['a suspended account', 'gone@demo.test', password],
    ['an account without a password', 'invited@demo.test', ''],
    ['no email address', '', password],
    ['an email address with a NUL byte', 'ada@demo.test\0', password],
    ['an email address with a lone surrogate', 'ada\uD800@demo.test', `\uDFFF${password}`],
    ['a very long email address', `${'a'.repeat(100_000)}@demo.test`, password],
    ['a very long password', 'ada@demo.test', 'a'.repeat(100_000)],
  ];
  for (const [reason, email, presented] of refused) {
    it(`${reason} is refused after one comparison, so that nothing tells why`, async function () {
      // Something else that this process does at that moment counts as well, such as tidying up.
      this.retries(3);
      const oneComparison = await workOf(() =>
        verifyPassword(hash, 'wrong horse battery', { email }),
      );
      const work = await workOf(async () => {
        expect(await signIn({ email, password: presented })).to.equal('refused');
      });
      // None would be next to nothing, two would be twice as much.
      expect(work / oneComparison).to.be.within(0.6, 1.6);
    });
  }
});
